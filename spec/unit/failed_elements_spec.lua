-- failed_elements_spec.lua: a pass in which elements failed goes on from a saved position as it went on itself.
local flow = require "flow"
require "spec.support.init"

-- Numbers from 0; those in `bad` fail whenever they are computed.
local function numbers(count, bad)
  local broken = {}
  for i = 1, count do broken[i] = 1 end
  for _, i in ipairs(bad) do broken[i + 1] = 1000 end
  return flow.data.Dataset.from_tensor_slices { flow.arange(count), flow.tensor(broken, { dtype = "int32" }) }:map(function(x, position)
    return x + 0 * flow.take(flow.zeros { 2 }, position, 1)
  end)
end

-- What next() gives, at most `most` times: numbers, "failed", and nothing after the end.
local function walk(iterator, most)
  local list = {}
  for _ = 1, most do
    local ok, x = pcall(iterator.next, iterator)
    if ok and x == nil then break end
    list[#list + 1] = ok and (#x.shape == 0 and x:item() or table.concat(x:totable(), "+")) or "failed"
  end
  return table.concat(list, " ")
end

local PIPELINES = {
  take = function() return numbers(20, { 3, 4, 8 }):take(7) end,
  ["take of a filter"] = function() return numbers(20, { 3, 4, 8 }):filter(function(x) return x:ne(5) end):take(6) end,
  ["take of takes"] = function() return numbers(20, { 1 }):take(5):concatenate(numbers(9, { 2, 3 }):take(4)):take(8) end,
  ["a repeated take"] = function() return numbers(9, { 2 }):take(3):repeat_(3) end,
  batches = function() return numbers(20, { 3 }):take(9):batch(2) end,
  prefetch = function() return numbers(20, { 3, 8 }):take(9):prefetch(3) end,
}

describe("a pass with elements that failed", function()
  for name, make in pairs(PIPELINES) do
    it("is restored at each position: " .. name, function()
      local whole = walk(make():iter(), 100)
      assert.truthy(whole:find "failed")
      for taken = 0, select(2, whole:gsub("%S+", "")) do
        local one, other = make():iter(), make():iter()
        local before = walk(one, taken)
        local position = one:save()
        other:restore(position)
        assert.equal(position, other:save())
        local expected = walk(one, 100)
        assert.equal(whole, (before .. " " .. expected):match "^%s*(.-)%s*$")
        assert.equal(expected, walk(other, 100), "after " .. taken .. " elements")
      end
    end)
  end

  it("has its failures in the position, and damaged ones are refused", function()
    local one = numbers(20, { 3, 4, 8 }):iter()
    walk(one, 10)
    local position = one:save()
    assert.truthy(position:find " failed 3%+2 failed 8%+1$", position)
    local endings = { " failed 3", " failed 4+0", " failed -1+2", " failed 8+1 failed 3+2", " failed 3+9223372036854775807", " x" }
    for _, ending in ipairs(endings) do
      local text = position:gsub(" failed.*", "") .. ending
      local ok, problem = pcall(one.restore, one, text)
      assert.is_false(ok, ending)
      assert.truthy(tostring(problem):find("the position of a dataset is damaged", 1, true), problem)
    end
  end)
end)
