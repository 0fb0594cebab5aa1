-- goodput_spec.lua: the arithmetic of scripts/faults-cluster --goodput (spec/faults/share.lua).
require "spec.support.init"
local share = require "spec.faults.share"

-- What a survivor saw: steps at these rates from `from` on, with a pause after each kill.
local function steps(from, kills, ended, pause, rate_before, rate_after)
  local times = {}
  for time = from, kills[1].at, 1 / rate_before do times[#times + 1] = time end
  for i, kill in ipairs(kills) do
    local to = kills[i + 1] and kills[i + 1].at or ended
    for time = kill.at + pause, to - 1e-6, 1 / rate_after do times[#times + 1] = time end
  end
  return times
end

describe("goodput", function()
  local kills = { { at = 130, victim = 0 }, { at = 145, victim = 1 }, { at = 160, victim = 0 }, { at = 175, victim = 1 } }
  local function of(...)
    local times = steps(100, kills, 190, ...)
    return share.of({ [0] = times, times }, 100, kills, 190)
  end

  it("is a part of the steps that the same seconds bring, whatever the machine did before", function()
    for _, before in ipairs { 60, 100, 160 } do
      local found = of(0.75, before, 100)
      assert.near(0.95, found.share, 0.002)
      assert.near(100, found.quiet_rate, 0.5)
      assert.near(before, found.rate_before, 0.5)
      assert.near(0.75, found.median, 1e-6)
      assert.near(0.75, found.slowest, 1e-6)
    end
  end)

  it("counts an interval without a step as lost, and as its whole length", function()
    local times = steps(100, kills, 190, 0.75, 100, 100)
    local missing = {}
    for _, time in ipairs(times) do if time < 145 or time >= 160 then missing[#missing + 1] = time end end
    local found = share.of({ [0] = missing, missing }, 100, kills, 190)
    assert.near(15, found.slowest, 1e-6)
    assert.is_true(found.made == of(0.75, 100, 100).made - 1425, found.made)
  end)

  it("takes what was before the kills where nothing was quiet", function()
    local found = of(15, 100, 100)
    assert.equal(0, found.made)
    assert.equal(0, found.share)
    assert.near(100, found.quiet_rate, 0.5)
  end)
end)
