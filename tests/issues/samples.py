"""Issues to read in tests: small ones of our own, and the seeds where they lie beside this repository."""

from pathlib import Path

from tests import needs

SEEDS = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"

DAILY = """\
技术日报
本期重点：缓存为何没有变快。
重点
缓存：先看瓶颈，再谈提速
2026-10-26 的一项研究比较了两种缓存。
它们的差别在于何时写回。
https://example.org/cache
简讯
编译器：把检查提前
检查提前之后，错误更早出现。
https://example.org/compiler
https://example.org/compiler/notes
网络：少一次往返
握手少了一次往返。
经典回顾
日志：先写再改
先写日志，再改数据。带着一个问题读：断电之后还剩什么？"""

WEEKLY = """\
技术周报
2026-10-18 至 2026-10-25，几件事围绕同一个问题。
缓存：写回与写穿
写回更快，更新了 2026-10-22 日报中的说法。
https://example.org/a
网络：往返与带宽
带宽不是全部。
https://example.org/b
"""

ENGLISH = """\
The Daily Build
Today: why a cache (缓存) did not get faster, and what a journal teaches us about the order of writes.
Features
Caches: look for the bottleneck first
A study of 2026-10-26 compares two caches, e.g. write-back ones. They differ in when they write.
https://example.org/cache
From the archive
Journals: write first, change later
Write the journal, then change the data. A question to read with: what is left when the power fails?
"""

MARKDOWN = """\
# 技术日报

本期重点：**缓存为何没有变快。**先看[一篇论文](https://arxiv.org/abs/2410.12345)。

## 重点

### 缓存：先看瓶颈，再谈提速

2026-10-26 的一项*研究*比较了 `write_back` 与“**两种缓存**”，见https://example.org/notes。
差别在于何时写回：

- 写回：先改缓存；
- 写穿：先改磁盘。
  1. 慢，
  2. 但稳。

> 没有测量，就没有结论。

```python
flush(page)
```

![两条曲线，一条平](https://example.org/curves.png)

- https://example.org/cache
- <https://github.com/example/cache/pull/12>

## 经典回顾

### 日志：先写再改

先写日志，再改数据。带着一个问题读：断电之后还剩什么？
"""


def seed(name: str) -> bytes:
    """A seed by its name, daily or weekly; without it the test is skipped."""
    path = SEEDS / f"{name}.txt"
    if not path.exists():
        needs.give_up(f"The seed {name}.txt does not lie beside this repository.")
    return path.read_bytes()
