-- composed_names_spec.lua: errors name the op that was called, not one that it is made of.
local flow = require "flow"
local support = require "spec.support.init"

local x = flow.ones { 3, 4 }

describe("an op that is made of others", function()
  local OPS = { "var", "std", "moments", "nanmean", "nansum", "average", "ptp", "count_nonzero", "l2_normalize", "median", "mean", "sum" }
  for _, name in ipairs(OPS) do
    it("has its own name in errors: " .. name, function()
      local expected = ("flow.%s: axis 5 is out of range: there are 2 axes, counted from 1"):format(name)
      local ways = {
        function() return flow[name](x, 5) end,
        function()
          local y = flow[name](x, 5)
          return y
        end,
        function()
          local y = flow[name](flow.Input { 4 }, 5)
          return y
        end,
        function()
          flow.fn(function(value)
            local y = flow[name](value, 5)
            return y
          end)(x)
        end,
        function() assert(pcall(flow[name], x, 5)) end,
      }
      for i, way in ipairs(ways) do
        local ok, message = pcall(way)
        assert.is_false(ok)
        assert.truthy(tostring(message):find(expected, 1, true), i .. ": " .. tostring(message))
      end
    end)
  end

  it("leaves what a function of the user's calls its own name", function()
    local message = support.message_of(function()
      flow.vectorized_map(function(row)
        local sum = flow.sum(row, 7)
        return sum
      end, x)
    end)
    assert.truthy(message:find("flow.sum: axis 7 is out of range", 1, true), message)
  end)
end)
