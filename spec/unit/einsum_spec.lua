-- einsum_spec.lua: flow.einsum against the sum over all labels that its definition names, and its gradients against differences.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

local SIZES = { a = 2, b = 3, c = 4, d = 1, e = 5 }

-- What the equation means: for each setting of all labels, the product of the operands' elements is added to the result's.
local function by_definition(inputs, output, lists)
  local labels, seen = {}, {}
  for label in (output .. table.concat(inputs)):gmatch "." do
    if not seen[label] then seen[label], labels[#labels + 1] = true, label end
  end
  local function offset(names, at)
    local position = 0
    for label in names:gmatch "." do position = position * SIZES[label] + at[label] end
    return position + 1
  end
  local result, at = {}, {}
  local function run(depth)
    if depth > #labels then
      local product = 1
      for i, names in ipairs(inputs) do product = product * lists[i][offset(names, at)] end
      local position = offset(output, at)
      result[position] = (result[position] or 0) + product
      return
    end
    for i = 0, SIZES[labels[depth]] - 1 do
      at[labels[depth]] = i
      run(depth + 1)
    end
  end
  run(1)
  return result
end

local function operands_of(inputs, seed)
  local tensors, lists = {}, {}
  for i, names in ipairs(inputs) do
    local shape = {}
    for label in names:gmatch "." do shape[#shape + 1] = SIZES[label] end
    tensors[i] = flow.random.uniform(shape, { minval = -1, maxval = 1, seed = seed + i })
    lists[i] = tensors[i]:flatten():totable()
  end
  return tensors, lists
end

local function split(equation)
  local left, output = equation:match "^(.*)%->(.*)$"
  local inputs = {}
  for names in (left .. ","):gmatch "([^,]*)," do inputs[#inputs + 1] = names end
  return inputs, output
end

local EQUATIONS = { "ab,bc->ac", "ab,cb->ca", "abc,acd->abd", "abc,adc->bda", "aebc,adbc->ebad", "ab->ba", "ab->", "abc->b", "aa->a",
  "aab->b", "aba->ba", "a,b->ba", "a,b,c->cab", "ab,bc,ce->ae", "abc,b->ac", "abc,abc->", "abc,abc->abc", "ab,c->b", "d,abd->bad",
  ",ab->ab", "abe,ecb,ca->b" }

describe("flow.einsum", function()
  for _, equation in ipairs(EQUATIONS) do
    it("is the sum over what the result lacks: " .. equation, function()
      local inputs, output = split(equation)
      local tensors, lists = operands_of(inputs, 7)
      local expected = by_definition(inputs, output, lists)
      local found = flow.einsum(equation, unpack(tensors))
      assert.equal(#output, found.rank)
      assert.is_true((found:flatten() - flow.tensor(expected)):abs():max():item() < 1e-5)
    end)
  end

  it("has gradients", function()
    local inputs = split "abc,ebc,c->aeb"
    local tensors = operands_of(inputs, 3)
    local function loss_of() return (flow.einsum("abc,ebc,c->aeb", unpack(tensors)) * 0.5):square():sum() end
    for i = 1, #inputs do
      local before = tensors[i]
      local v = flow.Variable(before)
      tensors[i] = v
      local tape = flow.GradientTape()
      local gradient = tape:gradient(tape:record(loss_of), v):flatten():totable()
      for _, k in ipairs { 1, #gradient } do
        local step = flow.one_hot(flow.tensor(k - 1), #gradient):reshape(unpack(before.shape)) * 1e-2
        tensors[i] = before + step
        local above = loss_of():item()
        tensors[i] = before - step
        assert.is_true(math.abs((above - loss_of():item()) / 2e-2 - gradient[k]) < 2e-2 * math.max(1, math.abs(gradient[k])))
      end
      tensors[i] = before
    end
  end)

  it("finds the result's labels where the equation does not name them, and keeps whole numbers", function()
    local a, b = flow.arange(6):reshape { 2, 3 }, flow.arange(12):reshape { 3, 4 }
    assert.same(a:matmul(b):totable(), flow.einsum("ij, jk", a, b):totable())
    assert.same(a:transpose():totable(), flow.einsum("ji", a):totable())
    assert.equal(12, flow.einsum("ii", flow.arange(9):reshape { 3, 3 }):item())
    assert.equal("int32", flow.einsum("i,i", flow.arange(2), flow.arange(2)).dtype)
  end)

  it("is an op of traced functions and of functional models, for any number of rows", function()
    local scores = flow.fn(function(q, k) return flow.einsum("bqd,bkd->bqk", q, k) end)
    local q, k = flow.random.normal { 2, 3, 4 }, flow.random.normal { 2, 5, 4 }
    assert.same(flow.einsum("bqd,bkd->bqk", q, k):totable(), scores(q, k):totable())
    local x, y = flow.Input { 3, 4 }, flow.Input { 5, 4 }
    local model = flow.Model { inputs = { x, y }, outputs = flow.einsum("bqd,bkd->bqk", x, y) }
    assert.same({ -1, 3, 5 }, model.output_shape)
    assert.is_true((model:predict({ q, k }, { verbose = 0 }) - scores(q, k)):abs():max():item() < 1e-5)
    assert.same({ -1, -1, -1 }, flow.einsum("bqd,bkd->bqk", flow.Input { -1, 4 }, flow.Input { -1, 4 }).shape)
  end)

  it("has an ellipsis for the axes that are not named, which broadcast", function()
    local a, b = flow.random.normal({ 2, 3, 4 }, { seed = 1 }), flow.random.normal({ 4, 5 }, { seed = 2 })
    local c = flow.random.normal { 7, 1, 4, 5 }
    local column, flat = b[{ {}, 1 }], flow.random.normal { 3, 1 }
    local outer = flow.expand_dims(a, 1)
    for equation, case in pairs {
      ["...i,ij->...j"] = { { a, b }, a:matmul(b) },
      ["...i,i->..."] = { { a, column }, (a * column):sum(-1) },
      ["...ij->...ji"] = { { a }, flow.transpose(a, { 1, 3, 2 }) },
      ["i...->..."] = { { a }, a:sum(1) },
      ["...,...->..."] = { { a, flat }, a * flat },
      ["...i,...i"] = { { a, a[1] }, (a * a[1]):sum(-1) },
      ["...ij,...jk->...ik"] = { { outer, c }, outer:matmul(c) },
      ["b...d,d->...b"] = { { a, column }, flow.transpose((a * column):sum(-1), { 2, 1 }) },
    } do
      local found, expected = flow.einsum(equation, unpack(case[1])), case[2]
      assert.same(expected.shape, found.shape, equation)
      assert.is_true((found - expected):abs():max():item() < 1e-5, equation)
      local traced = flow.fn(function(...) return flow.einsum(equation, ...) end)
      assert.same(found:totable(), traced(unpack(case[1])):totable(), equation)
    end
    local input = flow.Input { -1, 4 }
    assert.same({ -1, -1, 5 }, flow.einsum("...i,ij->...j", input, b).shape)
  end)

  it("refuses what does not fit", function()
    local a, b = flow.ones { 2, 3 }, flow.ones { 3, 4 }
    local function refused(text, ...)
      local given, count = { ... }, select("#", ...)
      local problem = message_of(function() flow.einsum(unpack(given, 1, count)) end)
      assert.truthy(problem:find(text, 1, true), problem)
    end
    refused("the label \"l\" of the result stands in no operand", "ij,jk->il", a, b)
    refused("stands twice in", "ij,jk->iik", a, b)
    refused("labels are letters, and one ellipsis ...", "i..->i", a)
    refused("labels are letters, and one ellipsis ...", "...i...->i", a)
    refused("operand 1 has 2 axes", "...ijk->i", a)
    refused("is for 1 operand, got 2", "ij->i", a, b)
    refused("\"i\" stands for 2 and, as axis 1 of operand 2, for 3", "ij,ij", a, b)
    refused("operand 1 has 2 axes", "ijk->i", a)
    refused("the equation is a text", a, b)
  end)
end)
