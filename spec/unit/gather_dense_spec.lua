-- gather_dense_spec.lua: plans that do not train keep the products of a table's rows (core/plan/passes/fuse_gather.c,
-- kernels/cpu/matrix_product/gather_dense.c).
local flow = require "flow"
local backend = require "spec.support.backend"
local case_numbers = require "spec.support.case_numbers"
local emulated = require "spec.support.emulated"
local steps = require "flow.train.steps"
local layers = flow.layers

local function gather(rows, indices) return backend.apply("gather", { rows, indices })[1] end
local function is_fused(text) return text:find("gather_dense", 1, true) ~= nil end

-- Bit by bit.
local function same(a, b, text)
  assert.same(a.shape, b.shape, text)
  assert.same(flow.view(a, "int32"):flatten():totable(), flow.view(b, "int32"):flatten():totable(), text)
end

-- A dense layer of rows of a table, and its three variables.
local function product_of(rows, width, units, relu)
  local weights = { flow.Variable(flow.random.normal({ rows, width }, { seed = rows })),
    flow.Variable(flow.random.normal({ width, units }, { seed = width })), flow.Variable(flow.random.normal({ units }, { seed = units })) }
  return function(indices)
    local y = flow.matmul(gather(weights[1]:value(), indices), weights[2]:value()) + weights[3]:value()
    return relu and y:relu() or y
  end, weights
end

describe("a dense layer of gathered rows", function()
  it("gives what the two ops give, whatever earlier runs have asked for, until a weight is written to", function()
    local first, last = case_numbers(40)
    for case = first, last do
      math.randomseed(case)
      local number = math.random
      local rows, width, units = number(300), ({ 64, 67, 128, 200, 1100 })[number(5)], ({ 1, 3, 16, 100, 384 })[number(5)]
      local dtype = ({ "int32", "int64", "uint8" })[number(rows <= 256 and 3 or 2)]
      local f, weights = product_of(rows, width, units, number(2) == 1)
      local kept = flow.fn(f)
      for run = 1, 6 do
        local shape = { number(0, 9), number(40) }
        local x = flow.random.uniform(shape, { maxval = rows, dtype = "int32", seed = case + run }):to(dtype)
        local text = ("case %d, run %d: {%d, %d} times %d of %d rows, %d columns"):format(case, run, rows, width, shape[1] * shape[2], rows,
          units)
        local result = kept(x)
        backend.near(f(x), result, 1e-5, text)
        same(flow.fn(f)(x), result, text .. ", in a new plan")
        if shape[1] > 0 then same(flow.fn(f)(x[{ { 1, 1 }, { 1, 1 } }]), result[{ { 1, 1 }, { 1, 1 } }], text .. ", alone") end
        if number(3) == 1 then
          local written = weights[number(3)]
          written:assign(flow.random.normal(written.shape, { seed = case + 100 + run }))
        end
      end
      assert.is_true(is_fused(kept:describe()))
    end
  end)

  it("names an index that is not in the table, and multiplies what that run had named afterwards", function()
    local f = product_of(50, 64, 8)
    local kept = flow.fn(f)
    local x = flow.tensor({ { 7, 8, 9 }, { 10, 11, 12 } }, { dtype = "int32" })
    for _, wrong in ipairs { 50, -1 } do
      local ok, message = pcall(kept, flow.tensor({ { 7, 8, 9 }, { 10, wrong, 12 } }, { dtype = "int32" }))
      assert.is_false(ok)
      assert.is_truthy(tostring(message):find(("index %d of row 2 is outside 0..49"):format(wrong), 1, true), message)
      same(kept(x), flow.fn(f)(x))
    end
  end)

  it("stays two ops where the table is narrow, products of all rows are large, or one of the two is computed from the input", function()
    local wide, narrow, units = flow.zeros { 20, 64 }, flow.zeros { 20, 32 }, flow.zeros { 64, 8 }
    local many, bias = flow.zeros { 300000, 64 }, flow.zeros { 8 }
    local w64, b64 = flow.zeros { 64, 64 }, flow.zeros { 64 }
    for k, f in ipairs {
      function(i) return flow.matmul(gather(narrow, i), flow.zeros { 32, 8 }) + bias end,
      function(i) return flow.matmul(gather(many, i), w64) + b64 end,
      function(i) return flow.matmul(gather(wide, i), units * flow.sum(i)) + bias end,
      function(i) return flow.matmul(gather(wide * flow.sum(i), i), units) + bias end,
    } do
      local traced = flow.fn(f)
      traced(flow.zeros({ 2, 3 }, { dtype = "int32" }))
      assert.is_false(is_fused(traced:describe()), k)
    end
  end)

  it("is the input product of recurrent layers in predictions, also of both directions, in every prediction between trainings", function()
    flow.random.set_seed(5)
    local input = flow.Input({ -1 }, { dtype = "int32" })
    local words = layers.Embedding(40, 64, { mask_zero = true })(input)
    local both = layers.Bidirectional(layers.LSTM(8, { return_sequences = true }))(words)
    local last = layers.GRU(8)(layers.Concatenate() { both, layers.Dense(8, { activation = "relu" })(words) })
    local model = flow.Model { inputs = input, outputs = layers.Dense(2)(last) }
    model:compile { optimizer = flow.optimizers.SGD(0.5), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    local function draw(rows, length)
      return flow.random.uniform({ rows, length }, { maxval = 40, dtype = "int32", seed = rows * length })
    end
    for round = 1, 3 do
      for _, size in ipairs { { 6, 12 }, { 1, 12 }, { 3, 5 }, { 6, 12 } } do
        local x = draw(size[1], size[2])
        backend.near(model(x), model:predict(x, { verbose = 0 }), 1e-5, ("round %d, {%d, %d}"):format(round, size[1], size[2]))
      end
      local plan = steps.describe(model._steps[#model._steps])
      local _, count = plan:gsub("gather_dense", "")
      assert.equal(3, count, plan)
      model:train_on_batch(draw(6, 12), flow.tensor({ 0, 1, 1, 0, 1, 0 }, { dtype = "int32" }))
      assert.is_false(is_fused(steps.describe(model._steps[#model._steps])))
    end
  end)

  it("stays two ops on a GPU", function()
    if emulated.missing() then
      pending(emulated.missing())
      return
    end
    flow.device("gpu:0", function()
      local traced = flow.fn((product_of(50, 64, 8)))
      traced(flow.zeros({ 2, 3 }, { dtype = "int32" }))
      assert.is_false(is_fused(traced:describe()))
    end)
  end)
end)
