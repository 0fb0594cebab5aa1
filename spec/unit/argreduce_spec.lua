-- argreduce_spec.lua: argmax and argmin of rows of any length, with NaN, infinities, zeros of both signs and equal elements anywhere,
-- against a plain loop.

local flow = require "flow"
local is_better = { argmax = function(a, b) return a > b end, argmin = function(a, b) return a < b end }
local special = { 0 / 0, 1 / 0, -1 / 0, -0.0, 0, 1e-45, 3 }

-- The first best element; the first NaN, which is better than numbers.
local function find(name, row)
  local at = 1
  for i = 2, #row do
    local a, best = row[i], row[at]
    if best == best and (a ~= a or is_better[name](a, best)) then at = i end
  end
  return at
end

describe("argmax and argmin", function()
  it("find the first best element of a row", function()
    math.randomseed(5)
    for trial = 1, 300 do
      local row, length = {}, math.random(1, trial % 10 == 0 and 5000 or 200)
      for i = 1, length do row[i] = math.random(-5, 5) end
      for _ = 1, math.random(0, 3) do row[math.random(length)] = special[math.random(#special)] end
      for _, dtype in ipairs { "float32", "float64" } do
        local rows = flow.tensor({ row, row }, { dtype = dtype })
        for name in pairs(is_better) do
          local expected = find(name, row)
          assert.same({ expected, expected }, flow[name](rows, { axis = -1 }):totable(), ("%s of %d %s"):format(name, length, dtype))
          assert.same({ expected, expected }, flow[name](flow.transpose(rows):contiguous(), { axis = 1 }):totable())
        end
      end
    end
  end)
end)
