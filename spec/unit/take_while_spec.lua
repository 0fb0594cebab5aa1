-- take_while_spec.lua: a condition that draws random numbers.
require "spec.support.init"
local flow = require "flow"

local function lucky(n)
  return flow.data.Dataset.range(n):take_while(function() return flow.random.uniform({}):lt(0.98) end)
end

-- How many elements each of `count` passes has.
local function lengths(ds, count)
  local list = {}
  for pass = 1, count do
    list[pass] = 0
    for _ in ds:iter() do list[pass] = list[pass] + 1 end
  end
  return list
end

describe("a condition of take_while that draws", function()
  it("draws other numbers in each pass", function()
    local seen, different = {}, 0
    for _, length in ipairs(lengths(lucky(1000), 6)) do
      different = different + (seen[length] and 0 or 1)
      seen[length] = true
    end
    assert.is_true(different > 1)
  end)

  it("draws the same ones after a position was restored", function()
    local ds = lucky(1000)
    lengths(ds, 2)
    local it = ds:iter()
    it()
    local position, rest = it:save(), {}
    for x in it do rest[#rest + 1] = x:item() end
    local again = ds:iter()
    again:restore(position)
    local list = {}
    for x in again do list[#list + 1] = x:item() end
    assert.same(rest, list)
  end)
end)
