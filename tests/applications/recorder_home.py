"""Home Assistant without a house: its core and recorder, and sensors that change; recorder_events.py starts it.

    python recorder_home.py DIRECTORY COMMIT_INTERVAL EVENTS EVENTS_A_SECOND

Keeps home-assistant_v2.db in DIRECTORY. Changes one of twenty sensors after the other at that rate. Prints, before it ends, how many
rows the recorder was given.
"""

import asyncio
import sys

from homeassistant.core import HomeAssistant  # before its loader, which imports it

from homeassistant import loader
from homeassistant.bootstrap import async_load_base_functionality
from homeassistant.components import recorder
from homeassistant.config_entries import ConfigEntries
from homeassistant.helpers.recorder import async_initialize_recorder
from homeassistant.setup import async_setup_component

SENSORS = 20


async def live(directory, commit_interval, events, rate):
    home = HomeAssistant(directory)
    home.config.skip_pip = True
    home.config_entries = ConfigEntries(home, {})
    loader.async_setup(home)
    await async_load_base_functionality(home)
    async_initialize_recorder(home)
    configuration = {"recorder": {"commit_interval": commit_interval, "auto_purge": False, "auto_repack": False}}
    if not await async_setup_component(home, "recorder", configuration):
        sys.exit("the recorder does not start")
    await home.async_start()
    await recorder.get_instance(home).async_recorder_ready.wait()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number in range(events):
        await asyncio.sleep(max(0, begun + number / rate - loop.time()))
        attributes = {"unit_of_measurement": "W", "friendly_name": f"Sensor {number % SENSORS}"}
        home.states.async_set(f"sensor.power_{number % SENSORS}", str(number * 7 % 1000 / 10 + number), attributes)
    await recorder.get_instance(home).async_block_till_done()
    print("changes", events, flush=True)
    await home.async_stop(force=True)


if __name__ == "__main__":
    directory, commit_interval, events, rate = sys.argv[1:]
    asyncio.run(live(directory, int(commit_interval), int(events), float(rate)))
