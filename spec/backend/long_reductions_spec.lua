--- Reductions whose few outputs are each of many elements, so that their elements are divided over threads: max, min, prod, any, all and
--- logsumexp over the first axis, beside plain loops over float64. FLOW_CASES=10000 tries this many.
require "spec.support.init"
local flow = require "flow"
local backend = require "spec.support.backend"

local FIRST, LAST = (require "spec.support.case_numbers")(24)
local DTYPES = { "float32", "float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool" }
local OPS = { "max", "min", "prod", "any", "all", "logsumexp" }

local function is_nan(x) return x ~= x end
local COMBINE = {
  max = function(a, b) return (is_nan(a) or a > b) and a or b end,
  min = function(a, b) return (is_nan(a) or a < b) and a or b end,
  prod = function(a, b) return a * b end,
  any = function(a, b) return (a ~= 0 or b ~= 0) and 1 or 0 end,
  all = function(a, b) return (a ~= 0 and b ~= 0) and 1 or 0 end,
  logsumexp = function(a, b) return a + math.exp(b) end,      -- the logarithm is taken in the end
}
local IDENTITY = { max = -math.huge, min = math.huge, prod = 1, any = 0, all = 1, logsumexp = 0 }

--- Case number `number`: x of {n, columns} or {n}, in one of three orders in memory, with what its op is interesting for at a few places.
local function random_case(number)
  local drawn, at = flow.random.uniform({ 16 }, { seed = 71 * number + 5 }):totable(), 0
  local function draw(low, high)
    at = at + 1
    return low + math.floor(drawn[at] * (high - low + 1) * 0.999999)
  end
  local op, dtype = OPS[draw(1, #OPS)], DTYPES[draw(1, #DTYPES)]
  local is_float = dtype:find "float" ~= nil
  if op == "logsumexp" and not is_float then dtype, is_float = "float32", true end
  local columns, whole = ({ 1, 2, 3, 7, 16, 65, 600 })[draw(1, 7)], draw(1, 2) == 1
  local rows = math.floor(draw(1, 400000) / columns) + 1
  local x = backend.uniform({ rows, columns }, number, -100, 101)
  if op == "prod" then x = is_float and 1 + x / 1e5 or x:to "int32" % 2 * 2 - 1 end      -- factors 1 and -1
  if op == "logsumexp" then x = x / 10 end
  if op == "any" then x = x * 0 end
  if dtype == "uint8" or dtype == "bool" then x = x:abs() end
  if op == "all" then x = x:abs() + 1 end
  local place, special = draw(1, rows * columns), draw(1, 4)
  if (op == "any" or op == "all") and special > 1 then
    x = flow.scatter_update(x:reshape { -1 }, { { place } }, { op == "any" and 1 or 0 }):reshape { rows, columns }
  elseif is_float and (op == "max" or op == "min") and special == 1 then
    x = flow.scatter_update(x:reshape { -1 }, { { place } }, { 0 / 0 }):reshape { rows, columns }
  end
  x = x:to(dtype)
  if columns == 1 and draw(1, 2) == 1 then x = x:reshape { rows } end
  local order = ({ false, "columns", "gaps" })[draw(1, 3)]
  return { op = op, x = order and backend.strided(x, order) or x, packed = x, axes = not whole and 1 or nil, rows = rows,
           columns = whole and 1 or columns, step = whole and 1 or columns, dtype = dtype,
           label = ("number %d: %s of %s {%d, %d}, %s, %s"):format(number, op, dtype, rows, columns, whole and "whole" or "first axis",
             order or "packed") }
end

local function expected_of(case)
  local combine, results = COMBINE[case.op], {}
  local values = case.packed:to(case.dtype == "int64" and "int64" or "float64"):reshape { -1 }:totable()
  for column = 1, case.columns do
    local result = IDENTITY[case.op]
    for i = column, #values, case.step do result = combine(result, tonumber(values[i])) end
    results[column] = case.op == "logsumexp" and math.log(result) or result
  end
  return results
end

local function flat(t) return t:reshape { -1 }:to "float64":totable() end

--- Of products of up to 400,000 factors, and of results of 16 bits.
local TOLERANCE = { float32 = 3e-7, float64 = 1e-10, float16 = 1e-3, bfloat16 = 8e-3 }

describe("a long reduction", function()
  it("is that of a plain loop", function()
    for number = FIRST, LAST do
      local case = random_case(number)
      local found, expected = flat(case.x[case.op](case.x, case.axes)), expected_of(case)
      assert.equal(#expected, #found, case.label)
      for i, value in ipairs(expected) do
        local tolerance = (case.op == "prod" or case.op == "logsumexp") and (TOLERANCE[case.dtype] or 0) * (1 + math.abs(value)) or 0
        local same = found[i] == value or is_nan(found[i]) and is_nan(value) or math.abs(found[i] - value) <= tolerance
        if not same then error(("%s: output %d is %.9g, expected %.9g"):format(case.label, i, found[i], value), 0) end
      end
      if number % 10 == 0 then collectgarbage() end
    end
  end)

  it("has the same bits in a plan and by any number of threads", function()
    finally(function() flow.config.set_threads(0) end)
    for number = FIRST, LAST do
      local case = random_case(number)
      local function reduce(t) return t[case.op](t, case.axes) end
      local eager, traced = reduce(case.packed), flow.fn(reduce)
      backend.by_threads(function(threads)
        backend.identical(eager, reduce(case.packed), case.label .. (", %d threads"):format(threads))
        backend.identical(eager, traced(case.packed), case.label .. (", in a plan, %d threads"):format(threads))
      end)
      if number % 10 == 0 then collectgarbage() end
    end
  end)
end)
