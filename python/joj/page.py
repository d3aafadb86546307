"""A report as one HTML page, without anything from elsewhere."""

from html import escape

from joj.report import Report, Row
from joj.text import cell, safe, show

STYLE = """
body { font: 15px/1.4 sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 0 0 2em; }
th, td { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: right; }
th { background: #f4f4f4; } td.text, th.text { text-align: left; }
tr.regression td { background: #fde4e1; } tr.improvement td { background: #e2f4e4; }
.problems { background: #fff6d8; padding: .6em 1em; white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def _table(rows: list[Row]) -> str:
    if not rows:
        return "<p>none</p>"
    is_text = [any(isinstance(row[name], str) for row in rows) for name in rows[0]]
    kinds = [' class="text"' if text else "" for text in is_text]
    head = "".join(f"<th{kind}>{escape(safe(name))}</th>" for name, kind in zip(rows[0], kinds, strict=True))
    html = f"<table><tr>{head}</tr>"
    for row in rows:
        cells = "".join(f"<td{kind}>{escape(cell(value))}</td>" for value, kind in zip(row.values(), kinds, strict=True))
        html += f'<tr class="{escape(str(row.get("verdict", "")))}">{cells}</tr>\n'
    return html + "</table>"


def page(report: Report) -> str:
    """The whole page."""
    head, _, _ = show(report).partition("\n\n")
    first, _, left_out = head.partition("\n")
    html = f"<!doctype html><html lang=en><meta charset=utf-8><title>Fleet</title><style>{STYLE}</style>\n"
    html += f"<h1>Fleet</h1><p>{escape(first)}</p>\n"
    html += f'<div class="problems">{escape(left_out)}</div>\n' if left_out else ""
    for section in report.sections:
        html += f"<h2>{escape(safe(section.title))}</h2>\n{_table(section.rows)}\n"
    return html + "</html>\n"
