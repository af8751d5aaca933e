"""Pages of HTML that need no network: of an experiment, of a live bandit's log, of the paper's claims."""

from rightarm.lab.report.experiment import report, write_report
from rightarm.lab.report.log import log_report

__all__ = ["log_report", "report", "write_report"]
