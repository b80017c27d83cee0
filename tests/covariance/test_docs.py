import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "covariances.md"


def test_the_page_runs_from_top_to_bottom():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 9
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
