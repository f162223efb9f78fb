"""Events become one map of live objects, and a word to the policies that they concern."""

from copy import deepcopy
from typing import Any

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, PRIORITY_CLASS
from gpufair.cluster.informer import Change
from gpufair.loops.caches import EVERY_POLICY, Caches
from gpufair.plan.records import workload_record
from gpufair.plan.selectors import NamespaceFact
from tests.unit.builders import Json, cluster_queue, keyed, live, local_queue, workload
from tests.unit.loops.fakes import caches

NLP = (CLUSTER_QUEUE, "", "nlp")


class Told:
    """A cache and what it told."""

    def __init__(self) -> None:
        self.words: list[tuple[set[str], bool]] = []
        self.namespaces = 0
        self.caches: Caches = caches(on_object=self._object, on_namespace=self._namespace)

    def _object(self, policies: set[str], urgent: bool) -> None:
        self.words.append((policies, urgent))

    def _namespace(self) -> None:
        self.namespaces += 1

    def event(
        self, change: Change, item: Json, *, old: Json | None = None, kind: Any = CLUSTER_QUEUE
    ) -> list[tuple[set[str], bool]]:
        """Feed one event as the informer does; return what was told."""
        self.words.clear()
        gone = change is Change.DELETED
        self.caches._changed(kind, change, item if gone else old, None if gone else item)
        return list(self.words)


@pytest.fixture
def told() -> Told:
    return Told()


def newer(item: Json, **changes: Any) -> Json:
    """The same object, changed and one version later."""
    made = deepcopy(item)
    made["metadata"]["resourceVersion"] = str(int(made["metadata"]["resourceVersion"]) + 1)
    made["metadata"].update(changes.pop("metadata", {}))
    return made | changes


def test_an_object_of_a_policy_is_kept_and_told(told: Told) -> None:
    item = cluster_queue()
    assert told.event(Change.ADDED, item) == [({"pool"}, True)]
    assert told.caches.live[NLP] is item


def test_our_own_write_seen_again_is_no_news(told: Told) -> None:
    item = cluster_queue()
    told.caches.wrote(CLUSTER_QUEUE, item)
    assert told.caches.live[NLP] is item
    assert told.event(Change.ADDED, deepcopy(item)) == []


def test_an_older_word_does_not_undo_our_write(told: Told) -> None:
    before = cluster_queue()
    after = newer(before)
    told.caches.wrote(CLUSTER_QUEUE, after)
    assert told.event(Change.MODIFIED, before) == []
    told.caches.wrote(CLUSTER_QUEUE, before)
    assert told.caches.live[NLP] is after


def test_a_deletion_is_urgent(told: Told) -> None:
    item = cluster_queue()
    told.event(Change.ADDED, item)
    assert told.event(Change.DELETED, item) == [({"pool"}, True)]
    assert NLP not in told.caches.live


def test_the_deletion_of_an_object_that_we_made_anew_is_no_news(told: Told) -> None:
    old = cluster_queue()
    told.event(Change.ADDED, old)
    told.caches.wrote(CLUSTER_QUEUE, newer(old, metadata={"uid": "another"}))
    assert told.event(Change.DELETED, old) == []
    assert told.caches.live[NLP]["metadata"]["uid"] == "another"


def change_of(told: Told, before: Json, after: Json, kind: Any = CLUSTER_QUEUE) -> bool:
    """Whether a change is urgent."""
    told.event(Change.ADDED, before, kind=kind)
    ((policies, urgent),) = told.event(Change.MODIFIED, after, old=before, kind=kind)
    assert policies == {"pool"}
    return urgent


def test_counters_alone_are_not_urgent(told: Told) -> None:
    before = cluster_queue(status={"pendingWorkloads": 1})
    assert not change_of(told, before, newer(before, status={"pendingWorkloads": 2}))


@pytest.mark.parametrize(
    "metadata",
    [
        {"generation": 2},
        {"annotations": {"a": "b"}},
        {"ownerReferences": []},
        {"deletionTimestamp": "2026-12-01T12:00:00Z"},
        {"uid": "another"},
    ],
)
def test_a_change_of_the_object_itself_is_urgent(told: Told, metadata: Json) -> None:
    before = cluster_queue(generation=1)
    assert change_of(told, before, newer(before, metadata=metadata))


def test_a_class_has_no_generation_so_its_value_counts(told: Told) -> None:
    before = live(PRIORITY_CLASS, "prod") | {"value": 1}
    assert change_of(told, before, newer(before, value=2), PRIORITY_CLASS)


def active(status: str, message: str = "m") -> Json:
    return {"conditions": [{"type": "Active", "status": status, "message": message}]}


@pytest.mark.parametrize(
    ("after", "urgent"),
    [(active("True"), True), (active("False", "why"), True), (active("False"), False)],
)
def test_what_kueue_says_of_a_queue_is_urgent(told: Told, after: Json, urgent: bool) -> None:
    before = cluster_queue(status=active("False"))
    assert change_of(told, before, newer(before, status=after)) is urgent


def test_an_object_that_changes_hands_concerns_both(told: Told) -> None:
    before = cluster_queue(policy="pool")
    told.event(Change.ADDED, before)
    labels = cluster_queue(policy="bank")["metadata"]["labels"]
    after = newer(before, metadata={"labels": labels})
    assert told.event(Change.MODIFIED, after, old=before) == [({"pool", "bank"}, True)]


def test_a_foreign_object_that_comes_or_goes_may_concern_any_policy(told: Told) -> None:
    item = cluster_queue(policy="")
    assert told.event(Change.ADDED, item) == [({EVERY_POLICY}, True)]
    assert told.event(Change.DELETED, item) == [({EVERY_POLICY}, True)]


def test_a_foreign_object_that_asks_to_be_adopted_concerns_any_policy(told: Told) -> None:
    item = cluster_queue(policy="")
    told.event(Change.ADDED, item)
    asking = newer(item, metadata={"annotations": {"gpufair.io/adopt": "true"}})
    assert told.event(Change.MODIFIED, asking, old=item) == [({EVERY_POLICY}, True)]


def test_a_foreign_object_that_only_works_concerns_nobody(told: Told) -> None:
    item = cluster_queue(policy="")
    told.event(Change.ADDED, item)
    after = newer(item, status={"pendingWorkloads": 9}, metadata={"generation": 2})
    assert told.event(Change.MODIFIED, after, old=item) == []


def test_namespaces_are_kept_counted_and_told(told: Told) -> None:
    view = told.caches
    fact = NamespaceFact("nlp", {"team": "nlp"})
    view._namespace_changed(Change.ADDED, None, fact)
    assert (view.namespaces, view.namespace_revision, told.namespaces) == ({"nlp": fact}, 1, 1)
    view._namespace_changed(Change.DELETED, fact, None)
    assert (view.namespaces, view.namespace_revision, told.namespaces) == ({}, 2, 2)


def record(*conditions: str, queue: str = "nlp") -> Any:
    return workload_record(workload(conditions=conditions, cluster_queue=queue))


def released(told: Told, old: Any, new: Any) -> list[tuple[set[str], bool]]:
    told.caches.live.update(keyed(cluster_queue(), local_queue("nlp")))
    told.words.clear()
    told.caches._workload_changed(Change.MODIFIED, old, new)
    return told.words


def test_a_workload_concerns_the_policy_of_its_queue_without_haste(told: Told) -> None:
    assert released(told, record(), record("QuotaReserved")) == [({"pool"}, False)]


def test_a_workload_of_a_queue_of_others_concerns_nobody(told: Told) -> None:
    assert released(told, None, record(queue="theirs")) == []


@pytest.mark.parametrize("new", [record("Finished"), None])
def test_the_end_of_work_is_urgent_for_a_policy_that_waits_for_it(told: Told, new: Any) -> None:
    told.caches.retiring.add("pool")
    assert released(told, record("QuotaReserved"), new) == [({"pool"}, True)]


def test_the_end_of_pending_work_is_never_urgent(told: Told) -> None:
    told.caches.retiring.add("pool")
    assert released(told, record(), None) == [({"pool"}, False)]
