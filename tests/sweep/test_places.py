"""GPUs and cores are handed out to the runs."""

from srwm.sweep._places import hand_out, visible_gpus

GPUS = "CUDA_VISIBLE_DEVICES"


def given(places, name):
    return [dict(place.environment).get(name) for place in places]


def test_one_run_a_gpu_by_default():
    places = hand_out(None, ["0", "1", "2"], cores=12, environment={})
    assert given(places, GPUS) == ["0", "1", "2"]
    assert given(places, "OMP_NUM_THREADS") == ["4", "4", "4"]


def test_one_run_with_all_cores_where_there_is_no_gpu():
    (place,) = hand_out(None, [], cores=6, environment={})
    assert place.environment == (("OMP_NUM_THREADS", "6"),)


def test_runs_share_the_cores():
    assert given(hand_out(3, [], cores=8, environment={}), "OMP_NUM_THREADS") == ["2", "2", "2"]


def test_more_runs_than_cores_get_one_thread_each():
    assert given(hand_out(3, [], cores=2, environment={}), "OMP_NUM_THREADS") == ["1", "1", "1"]


def test_more_runs_than_gpus_share_them_evenly():
    assert given(hand_out(5, ["0", "1"], cores=8, environment={}), GPUS) == ["0", "1", "0", "1", "0"]


def test_fewer_runs_than_gpus_take_one_each():
    assert given(hand_out(1, ["0", "1"], cores=8, environment={}), GPUS) == ["0"]


def test_number_of_threads_that_the_user_chose_is_kept():
    assert given(hand_out(2, [], cores=8, environment={"OMP_NUM_THREADS": "1"}), "OMP_NUM_THREADS") == ["1", "1"]


def test_places_have_names_of_their_own():
    for gpus in ([], ["0"], ["0", "1"]):
        assert len({place.name for place in hand_out(5, gpus, cores=2, environment={})}) == 5


def test_gpus_are_named_as_the_environment_names_them():
    assert visible_gpus(2, {GPUS: "3, GPU-8a"}) == ["3", "GPU-8a"]
    assert visible_gpus(2, {}) == ["0", "1"]


def test_no_gpu_is_named_where_none_is_found():
    assert visible_gpus(0, {GPUS: ""}) == visible_gpus(0, {GPUS: "0"}) == visible_gpus(0, {}) == []
