-- Orders of whole lines, of every length of line that is sorted in its own way and of keys of 32 and 64 bits: beside Lua's own sort.
local flow = require "flow"

local SPECIAL = { 0, -0.0, 1 / 0, -1 / 0, 0 / 0, 1, -1, 1e-40, -1e-40, 0 / 0, 0, -0.0 }

-- n numbers in no order, many of which occur several times; those of floats begin with what is special.
local function numbers(n, dtype)
  local list, state = {}, 12345
  for i = 1, n do
    state = (state * 1103515245 + 12345) % 2147483648
    list[i] = dtype:find "float" and (SPECIAL[i] or (state % 5000 - 2500) / 8) or state % 3000 * (dtype == "int64" and 2 ^ 40 or 1) - 500
  end
  return list
end

-- Whether a comes before b: NaN is above all, and both zeros are one.
local function is_before(a, b)
  if a ~= a or b ~= b then return a == a and b ~= b end
  return a < b
end

describe("flow.argsort", function()
  for _, dtype in ipairs { "float32", "float64", "int32", "int64" } do
    for _, n in ipairs { 1, 2, 40, 41, 700, 8191, 8192, 20000 } do
      it(("has %d elements of %s in order, equal ones as they were"):format(n, dtype), function()
        local list = numbers(n, dtype)
        local x = flow.tensor(list, { dtype = dtype })
        for _, descending in ipairs { false, true } do
          local expected = {}
          for i = 1, n do expected[i] = i end
          table.sort(expected, function(i, j)
            local a, b = list[i], list[j]
            if descending then a, b = b, a end
            if is_before(a, b) or is_before(b, a) then return is_before(a, b) end
            return i < j
          end)
          local found = descending and select(2, flow.top_k(x, n)) or flow.argsort(x)
          for i, position in ipairs(found:totable()) do
            if position ~= expected[i] then error(("place %d: position %d, expected %d"):format(i, position, expected[i])) end
          end
        end
      end)
    end
  end
end)
