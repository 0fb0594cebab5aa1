--- Random calls of the public tensor ops over all dtypes and shapes, sizes of 0 among them, compared with NumPy's rules in doubles
--- (spec/support/arrays.lua). FLOW_CASES says how many; a failure names its number, and FLOW_CASE=number runs that one alone.
local arguments = require "spec.backend.random_ops.arguments"
local public = require "flow.tensor.ops"
local native = require "flow.ffi"

local FIRST, LAST = (require "spec.support.case_numbers")(400)

--- Each op: f(s) gives a list of { found, expected array, dtype, scale, count }. scale: what errors are in proportion to besides the
--- result, a number or one for each element; count: how many roundings there are.
local ops = {}
for _, room in ipairs { "elementwise", "reductions", "movement", "lines" } do
  for name, op in pairs(require("spec.backend.random_ops." .. room)) do ops[name] = op end
end

local function compare(what, check)
  local found, expected, dtype, scale, roundings = unpack(check)
  assert.equals(dtype, found.dtype, what .. ": dtype")
  assert.same(expected.shape, found.shape, what .. ": shape")
  local list = arguments.array_of(found)
  for i = 1, expected.n do
    local wanted, got = arguments.as(dtype, expected[i]), list[i]
    local near = wanted == got or (wanted ~= wanted and got ~= got)
    if not near and arguments.is_float(dtype) then
      -- 16-bit results come from float32 and are rounded once; formulas of several ops round after each of them.
      local size = math.max(math.abs(wanted), type(scale) == "table" and scale[i] or scale)
      near = math.abs(wanted - got) <= size * arguments.EPSILON[dtype] * roundings
    end
    if not near then
      error(("%s: element %d of %s %s is %.17g, expected %.17g"):format(what, i, dtype, table.concat(found.shape, "x"), got, wanted), 0)
    end
  end
end

local names = {}
for name in pairs(ops) do names[#names + 1] = name end
table.sort(names)

describe("random calls of tensor ops", function()
  it("are made of every op that users call", function()
    local known, missing = {}, {}
    local late = {}
    for name in pairs(native.late_methods) do late[#late + 1] = name end
    for _, name in ipairs(late) do assert(public[name], name) end      -- makes those that nothing has asked for
    for _, name in ipairs(names) do known[rawget(public, name) or 0] = true end
    -- Called beside another op in the function of that one, or no op on elements; einsum_spec.lua has einsum.
    for _, name in ipairs { "squeeze", "unstack", "repeat_", "zeros_like", "ones_like", "swapaxes", "permute", "flatten",
                            "to", "classes", "einsum", "operand", "operands", "full_raw", "reshape_raw", "slice_from_zero", "exponential",
                            "slice_into_zeros", "positions_from_zero", "axis_from", "ensure_shape",
                            "floor_divide" } do      -- golden/ops_spec.lua has the last
      known[assert(rawget(public, name), name)] = true
    end
    for name, f in pairs(public) do
      if type(f) == "function" and not known[f] then missing[#missing + 1] = name end
    end
    assert.same({}, missing)
  end)

  for index, name in ipairs(names) do
    it(name, function()
      local failures = {}
      for case = FIRST + (index - FIRST) % #names, LAST, #names do
        local ok, message = pcall(function()
          local checks = ops[name](arguments.source(case))
          if checks.fails then
            local succeeded, text = pcall(checks.fails)
            assert.is_false(succeeded, "there should be an error")
            assert.is_truthy(tostring(text):find(checks.message, 1, true), text)
          end
          for i, check in ipairs(checks) do compare(("case %d, result %d"):format(case, i), check) end
        end)
        if not ok then failures[#failures + 1] = ("FLOW_CASE=%d: %s"):format(case, tostring(message)) end
      end
      if #failures > 0 then error(("%d failures, the first: %s"):format(#failures, failures[1]), 0) end
    end)
  end
end)
