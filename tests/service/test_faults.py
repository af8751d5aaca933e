"""What was acknowledged stays, once, whatever dies: processes, the power, the network, the database, the disk."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from faults import BANDITS, TIMED, Load, Service, services
from proxy import Proxy

import power
from postgres import Postgres

needs_shim = pytest.mark.skipif(
    power.library() is None, reason="the SQLite of this Python lies within it, and its functions cannot be reached"
)


def verify(store: str) -> None:
    """Let `rightarm verify` fold everything again."""
    program = "from rightarm.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program, "verify", store], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def kill_often(store: str, folder: Path, times: int) -> None:
    luck = random.Random(times)
    with services([store], folder) as [service]:
        with Load([service]) as load:
            for _ in range(times):
                load.wait(luck.randint(1, 100))
                service.kill()
                if luck.random() < 0.2:  # another one before it has answered anything
                    service.start(wait=False)
                    service.kill()
                service.start()
            load.wait(100)
        load.check(service)
        assert service.stop() == 0
        assert load.failed.total() > 0
    verify(store)


def test_what_was_acknowledged_outlives_kill_9(store_url: str, tmp_path: Path) -> None:
    kill_often(store_url, tmp_path, 1)


@pytest.mark.full
def test_what_was_acknowledged_outlives_100_times_kill_9(store_url: str, tmp_path: Path) -> None:
    kill_often(store_url, tmp_path, 100)


def lose_power(folder: Path, times: int) -> None:
    """Kill the service, and leave of its files what was synced: alone, or with some sectors of what was not."""
    disk, tape, luck = folder / "disk", folder / "tape", random.Random(times)
    files, store = dict[str, bytes](), f"sqlite:///{disk / 'store.db'}"
    disk.mkdir()
    with services([store], folder, "--tape", str(tape)) as [service]:
        with Load([service]) as load:
            for number in range(times):
                load.wait(luck.randint(1, 100))
                service.kill()
                files = power.Disk(files).play(power.records(tape)).left(luck if number % 2 else None)
                power.put(files, disk)
                tape.unlink()
                service.start("--tape", str(tape))
            load.wait(100)
        load.check(service)
    verify(store)


@needs_shim
def test_what_was_acknowledged_outlives_a_power_loss(tmp_path: Path) -> None:
    lose_power(tmp_path, 2)


@needs_shim
@pytest.mark.full
def test_what_was_acknowledged_outlives_50_power_losses(tmp_path: Path) -> None:
    lose_power(tmp_path, 50)


@contextmanager
def replicas(postgres: Postgres, url: str, folder: Path, count: int) -> Iterator[tuple[list[Service], list[Proxy]]]:
    """Services on one database, each by way of a proxy."""
    with ExitStack() as stack:
        proxies = [Proxy(postgres.socket) for _ in range(count)]
        for proxy in proxies:
            stack.callback(proxy.close)
        running = stack.enter_context(services([proxy.url(url) for proxy in proxies], folder))
        yield running, proxies


class Trouble:
    """Things that happen to replicas under load."""

    def __init__(self, load: Load, proxies: list[Proxy], postgres: Postgres, url: str, luck: random.Random) -> None:
        self.load, self.proxies, self.postgres, self.url, self.luck = load, proxies, postgres, url, luck
        lines = [self.cut_a_line] * 3
        self.kinds = [self.kill_a_replica, self.restart_the_database, self.kill_the_database, self.disconnect, *lines]

    def kill_a_replica(self) -> None:
        service = self.luck.choice(self.load.services)
        service.kill()
        self.load.wait(10)  # the others go on
        service.start()

    def restart_the_database(self) -> None:
        self.postgres.stop()
        self.postgres.start()

    def kill_the_database(self) -> None:
        self.postgres.kill()
        self.postgres.start()

    def disconnect(self) -> None:
        self.postgres.disconnect(self.url)

    def cut_a_line(self) -> None:
        """In the middle of an answer of the database: that to a COMMIT, say."""
        proxy = self.luck.choice(self.proxies)
        before = proxy.cuts
        proxy.cut(self.luck.randint(0, 2000))
        while proxy.cuts == before:
            self.load.wait(1)


def trouble(count: int, faults: int, url: str, postgres: Postgres, folder: Path) -> None:
    """One fault after another, on replicas under load."""
    luck = random.Random(faults)
    with replicas(postgres, url, folder, count) as (running, proxies):
        with Load(running) as load:
            some = Trouble(load, proxies, postgres, url, luck)
            for number in range(faults):
                load.wait(luck.randint(10, 100))
                some.kinds[number % len(some.kinds)]()
            load.wait(200)
        load.check(luck.choice(running))
    verify(url)


def test_replicas_agree_in_spite_of_faults(postgres: Postgres, postgres_url: str, tmp_path: Path) -> None:
    trouble(2, 5, postgres_url, postgres, tmp_path)


@pytest.mark.full
def test_four_replicas_agree_in_spite_of_70_faults(postgres: Postgres, postgres_url: str, tmp_path: Path) -> None:
    trouble(4, 70, postgres_url, postgres, tmp_path)


def clock_jumps(store: str, folder: Path, times: int) -> None:
    """Windows close too early or too late, and nothing else happens."""
    bandits, luck = BANDITS | TIMED, random.Random(times)
    with services([store], folder, "--jumps", "0", bandits=bandits) as [service]:
        with Load([service], bandits) as load:
            for number in range(times):
                load.wait(luck.randint(100, 200))
                service.kill()
                service.start("--jumps", str(number + 1))
            load.wait(200)
        load.check(service)
        assert [answer for answer in service.story("timed").answers.values() if answer is not None]
    verify(store)


@pytest.mark.full
def test_a_clock_that_jumps_disturbs_nothing(sqlite_url: str, tmp_path: Path) -> None:
    clock_jumps(sqlite_url, tmp_path, 0)


@pytest.mark.full
def test_a_clock_that_jumps_all_the_time_disturbs_nothing(store_url: str, tmp_path: Path) -> None:
    clock_jumps(store_url, tmp_path, 10)


@needs_shim
def test_a_full_disk_is_a_503_and_the_service_goes_on_when_there_is_room(tmp_path: Path) -> None:
    store, full = f"sqlite:///{tmp_path / 'store.db'}", tmp_path / "full"
    with services([store], tmp_path, "--tape", str(tmp_path / "tape"), "--full", str(full)) as [service]:
        with Load([service]) as load:
            for _ in range(3):
                load.wait(30)
                full.touch()
                load.wait_for_failures("503", 20)
                assert (service.get("/health")[0], service.get("/ready")[0]) == (200, 503)
                full.unlink()
                assert service.get("/ready")[0] == 200
            load.wait(50)
        load.check(service)
        assert load.failed.keys() == {"503"}
        assert service.stop() == 0
    verify(store)


@pytest.mark.full
def test_a_file_that_cannot_grow_is_a_503(tmp_path: Path) -> None:
    """A limit of the operating system: writes fail, some of them in the middle."""
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with services([store], tmp_path) as [service]:
        with Load([service]) as load:
            for _ in range(3):
                load.wait(50)
                limit = Path(f"{tmp_path / 'store.db'}-wal").stat().st_size // 2
                before = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
                resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (limit, before[1]))
                load.wait_for_failures("503", 20)
                resource.prlimit(service.pid, resource.RLIMIT_FSIZE, before)
                load.wait(50)
        load.check(service)
    verify(store)


def test_a_lost_database_is_a_503_and_the_service_goes_on_when_it_is_back(
    postgres: Postgres, postgres_url: str, tmp_path: Path
) -> None:
    with services([postgres_url], tmp_path) as [service]:
        with Load([service]) as load:
            for end in (postgres.stop, postgres.kill):
                load.wait(50)
                end()
                load.wait_for_failures("503", 20)
                assert (service.get("/health")[0], service.get("/ready")[0]) == (200, 503)
                postgres.start()
                load.wait(50)
        load.check(service)
        assert load.failed.keys() == {"503"}
        assert service.stop() == 0
    verify(postgres_url)
