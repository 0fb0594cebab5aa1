-- The dtypes that ops of one operand give, and those of two that are made of others, are Keras' (result_dtypes.lua), but for what RULES
-- names. A Lua number is an operand of the dtype that it takes beside the other one.
require "spec.support.init"
local flow = require "flow"
local golden = require "spec.golden.result_dtypes"

local dtypes = {}
for dtype in golden.dtypes:gmatch "%S+" do dtypes[#dtypes + 1] = dtype end

local function words(text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end
local whole, small = words "int8 uint8 int32 int64 bool", words "int8 uint8 int32 bool"

-- Where flowlua differs on purpose: the ops, what their operands are, the dtype. Chapter 9 of the guide has the first ones.
local RULES = {
  { "sum prod nansum nanprod trace", function(a) return small[a] end, "int64" },      -- so that no sum overflows
  { "argmax argmin argsort", function() return true end, "int64" },                   -- positions are int64
  { "floor ceil", function(a) return whole[a] end, "same" },                          -- float32 would round them
  { "layer_normalization", function(a) return whole[a] end, "float32" },              -- Keras cuts the result off
  -- As matmul, so that products do not overflow.
  { "dot", function(a, b) return a == "int8" and b == "int8" end, "int32" },
  { "inner tensordot", function(a, b) return a == "int8" and (b == "int8" or b == "bool") or a == "bool" and b == "int8" end, "int32" },
  -- Keras gives float64 where most of its functions of int64 give float32.
  { "hypot heaviside correlate deg2rad rad2deg i0 cbrt corrcoef", function(a, b) return a == "int64" or b == "int64" end, "float32" },
}
for _, rule in ipairs(RULES) do rule.ops = words(rule[1]) end

local function expected_of(op, keras, a, b)
  for _, rule in ipairs(RULES) do
    if rule.ops[op] and whole[a] and (b == nil or whole[b]) and rule[2](a, b) then return rule[3] == "same" and a or rule[3] end
    if rule.ops[op] and rule[1]:find "argmax" then return rule[3] end
  end
  return keras == "int16" and "int32" or keras
end

local SHAPES = { cross = { 2, 3 }, correlate = { 4 } }
local CALLS = {
  tensordot = function(a, b) return flow.tensordot(a, b, 1) end, einsum = function(a, b) return flow.einsum("ij,jk->ik", a, b) end,
  average = function(a, b) return flow.average(a, b and { weights = b }) end,
}
local function call(op, a, b) return (CALLS[op] or flow.keras.ops[op])(a, b) end
local function ones(op, dtype) return flow.ones(SHAPES[op] or { 2, 2 }, { dtype = dtype }) end

local function each(tables, f)
  for _, group in ipairs(tables) do
    for op in group.ops:gmatch "%S+" do f(op, group) end
  end
end
local function row_of(text)
  local row = {}
  for dtype in text:gmatch "%S+" do row[#row + 1] = dtype end
  assert.equal(#dtypes, #row)
  return row
end

-- check(op, wanted, a, b), with dtypes of one or two operands, for all that Keras runs.
local function each_case(check)
  local cases = 0
  each(golden.unary, function(op, group)
    for i, keras in ipairs(row_of(group.results)) do
      if keras ~= "-" then
        check(op, expected_of(op, keras, dtypes[i]), dtypes[i])
        cases = cases + 1
      end
    end
  end)
  each(golden.pairs, function(op, group)
    for _, first in ipairs(dtypes) do
      for i, keras in ipairs(row_of(group[first])) do
        if keras ~= "-" then
          check(op, expected_of(op, keras, first, dtypes[i]), first, dtypes[i])
          cases = cases + 1
        end
      end
    end
  end)
  assert.is_true(cases > 2000, cases)
end

describe("the dtypes of results as in Keras:", function()
  it("eager calls", function()
    each_case(function(op, wanted, a, b)
      assert.equal(wanted, call(op, ones(op, a), b and ones(op, b)).dtype, ("%s of %s and %s"):format(op, a, tostring(b)))
    end)
  end)

  it("traced calls", function()
    local eager = words "bincount"      -- how many counts it gives follows from values
    local inputs, at = {}, {}
    for _, shape in ipairs { { 2, 2 }, { 2, 3 }, { 4 } } do
      for _, dtype in ipairs(dtypes) do
        inputs[#inputs + 1] = flow.ones(shape, { dtype = dtype })
        at[dtype .. table.concat(shape, ",")] = #inputs
      end
    end
    flow.fn(function(...)
      local traced = { ... }
      local function operand(op, dtype) return traced[at[dtype .. table.concat(SHAPES[op] or { 2, 2 }, ",")]] end
      each_case(function(op, wanted, a, b)
        if eager[op] then return end
        assert.equal(wanted, call(op, operand(op, a), b and operand(op, b)).dtype, ("%s of %s and %s"):format(op, a, tostring(b)))
      end)
      return traced[1]
    end)(unpack(inputs))
  end)

  it("a number is an operand of the dtype that it takes beside the other one", function()
    local lists = words "tensordot einsum cross correlate average"
    each(golden.pairs, function(op, group)
      if lists[op] then return end
      for _, number in ipairs { 2, 0.5, true } do
        for i, dtype in ipairs(dtypes) do
          local own = number == true and "bool" or flow.add(number, flow.zeros({ 1 }, { dtype = dtype })).dtype
          local keras = row_of(group[own])[i]
          if keras ~= "-" then
            local wanted = op:find "^[id]" and keras or expected_of(op, keras, own, dtype)      -- inner and dot are not matmul here
            local what = ("%s of %s and %s"):format(op, tostring(number), dtype)
            assert.equal(wanted, call(op, number, ones(op, dtype)).dtype, what)
            assert.equal(wanted, call(op, ones(op, dtype), number).dtype, what .. ", the other way round")
          end
        end
      end
    end)
  end)
end)

describe("bools", function()
  local b = flow.tensor { true, false }
  local function refuses(f, ...)
    local ok, message = pcall(f, ...)
    assert.is_false(ok)
    assert.truthy(message:find('cast first, as with :to("int32")', 1, true), message)
  end

  it("have no difference and no sign, as in TensorFlow, NumPy and PyTorch", function()
    refuses(function() return -b end)
    refuses(function() return b - b end)
    refuses(function() return true - b end)
    refuses(function() return b - false end)
    refuses(flow.negative, b)
    refuses(flow.keras.ops.subtract, b, b)
    refuses(function() return flow.fn(function(x) return -x end)(b) end)
    refuses(function() return flow.fn(function(x) return x - x end)(b) end)
    local input = flow.Input({ 2 }, { dtype = "bool" })
    refuses(function() return -input end)
    refuses(function() return input - input end)
  end)

  it("are numbers beside numbers", function()
    assert.same({ 0, 1 }, (1 - b):totable())
    assert.equal("int32", (1 - b).dtype)
    assert.same({ 0.5, -0.5 }, (b - 0.5):totable())
    assert.same({ 1, 0 }, (b - flow.tensor({ 0, 0 }, { dtype = "int8" })):totable())
    assert.equal("int32", flow.square(b).dtype)
    assert.same({ 1, 0 }, flow.square(b):totable())
    assert.same({ 1, 1 }, flow.bincount(b):totable())
    assert.same({ true }, flow.diff(b):totable())
  end)
end)

describe("whole numbers keep their bits", function()
  it("in reductions that leave NaN out", function()
    local large = flow.tensor { 9007199254740993LL, 1LL }
    for name, wanted in pairs { nanmax = "9007199254740993", nanmin = "1", nansum = "9007199254740994", nanprod = "9007199254740993" } do
      assert.equal(wanted, (tostring(flow[name](large):item()):gsub("LL$", "")), name)
    end
    assert.equal(1, flow.nanargmax(large):item())
  end)

  it("on diagonals: a trace does not overflow its dtype", function()
    assert.equal(300, flow.trace(flow.full({ 3, 3 }, 100, { dtype = "int8" })):item())
  end)
end)

describe("dot", function()
  it("is a product where one operand is a number, as in Keras", function()
    assert.same({ 2, 4 }, flow.dot(2, flow.tensor { 1, 2 }):totable())
    assert.same({ 2, 4 }, flow.dot(flow.tensor { 1, 2 }, 2):totable())
  end)

  it("sums over the last but one axis of the second operand, whatever its rank", function()
    local a, b = flow.arange(6):reshape { 2, 3 }, flow.arange(24):reshape { 2, 3, 4 }
    local product = flow.dot(a, b)
    assert.same({ 2, 2, 4 }, product.shape)
    for i = 1, 2 do
      for j = 1, 2 do
        assert.same(a[i]:matmul(b[j]):totable(), product[{ i, j }]:totable())
      end
    end
    assert.same({ 2, 3, 2, 4 }, flow.dot(flow.ones { 2, 3, 3 }, b).shape)
    assert.equal(14, flow.dot(flow.tensor { 1, 2, 3 }, flow.tensor { 1, 2, 3 }):item())
  end)
end)
