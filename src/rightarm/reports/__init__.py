"""Pages of HTML that need no network: of an experiment, of a live bandit's log, of the paper's claims."""

from rightarm.reports.experiment_page import report, write_report
from rightarm.reports.log_page import log_report

__all__ = ["log_report", "report", "write_report"]
