"""Pages of HTML that need no network: the report of an experiment, and the page of the paper's claims."""

from rightarm.lab.report.experiment import report, write_report

__all__ = ["report", "write_report"]
