-- attention_blocks_spec.lua: plans compute attention over many steps by blocks, without the matrix of its scores
-- (core/plan/passes/fuse_attention.c, kernels/cpu/network/attention.c).
local flow = require "flow"
local backend = require "spec.support.backend"
local case_numbers = require "spec.support.case_numbers"
local emulated = require "spec.support.emulated"
local steps = require "flow.train.steps"
local layers = flow.layers

local function count(text, op) return select(2, text:gsub("%f[%w_]" .. op .. "%f[^%w_]", "")) end

-- softmax(q k^T) v, where scores count as -1e9 where the mask, if there is one, is false.
local function attend(q, k, v, mask)
  local scores = flow.matmul(q, k, { transpose_b = true })
  if mask then scores = flow.where(mask, scores, -1e9) end
  return flow.matmul(flow.softmax(scores), v)
end

-- The result and twice the gradients of q, k and v, for the gradient g of the result.
local function differentiate(q, k, v, g, mask)
  local tape, y = flow.GradientTape()
  tape:watch(q) tape:watch(k) tape:watch(v)
  local loss = tape:record(function()
    y = attend(q, k, v, mask)
    return flow.sum(y * g)
  end)
  local gradients = tape:gradient(loss, { q, k, v })
  return y, gradients[1] * 2, gradients[2] * 2, gradients[3] * 2
end

-- Masks that scores {batch, heads, t, s} may have, by their names.
local masks = {
  none = function() end,
  causal = function(_, t, s) return flow.reshape(flow.arange(t), { t, 1 }):ge(flow.reshape(flow.arange(s), { 1, s })) end,
  -- each text of the batch has another number of keys
  lengths = function(b, _, s)
    return flow.reshape(flow.arange(s), { 1, 1, 1, s }):lt(flow.reshape(flow.arange(b) * 7 + 3, { b, 1, 1, 1 }))
  end,
  -- every other row sees nothing
  rows = function(_, t) return flow.reshape(flow.arange(t) % 2, { t, 1 }):eq(0) end,
  -- each row sees few keys, in the middle; rows from 100 on see one key more at the end, and one of them sees none
  bands = function(_, t, s)
    local row, key = flow.reshape(flow.arange(t), { t, 1 }), flow.reshape(flow.arange(s), { 1, s })
    local middle = flow.logical_and(key:ge(row % 91 + 41), key:lt(row % 91 + 46))
    return flow.logical_and(flow.logical_or(middle, flow.logical_and(row:ge(100), key:eq(s - 2))), row:ne(199))
  end,
  holes = function(b, t, s, seed) return flow.random.uniform({ b, 1, t, s }, { seed = seed }):lt(0.3) end,
}

describe("attention over many steps", function()
  it("has the values and the gradients of its ops, whatever its sizes and mask, and the same bits on any number of threads", function()
    local threads = flow.config.get_threads()
    finally(function() flow.config.set_threads(threads) end)
    local first, last = case_numbers(24)
    for case = first, last do
      math.randomseed(case)
      local number = math.random
      local b, h, t, s = number(3), number(3), number(200, 420), number(330, 420)
      local d, e = ({ 1, 8, 33, 64 })[number(4)], ({ 1, 5, 32, 64 })[number(4)]
      local name = ({ "none", "causal", "lengths", "rows", "holes", "bands" })[case % 6 + 1]
      local text = ("case %d: %d x %d, %d steps of %d, %d keys of %d, mask %s"):format(case, b, h, t, d, s, e, name)
      local function draw(steps_of, width, seed) return flow.random.normal({ b, h, steps_of, width }, { seed = case * 10 + seed }) end
      local q, k, v, g = draw(t, d, 1), draw(s, d, 2), draw(s, e, 3), draw(t, e, 4)
      q = q / math.sqrt(d)
      local mask = masks[name](b, t, s, case)
      local predict = flow.fn(function(...) return attend(...) end)
      local train = flow.fn(function(...) return differentiate(...) end)
      local results
      for _, several in ipairs { 1, 2, 3 } do
        flow.config.set_threads(several)
        local now = { predict(q, k, v, mask), train(q, k, v, g, mask) }
        for i, x in ipairs(now) do now[i] = flow.view(x, "int32"):flatten():totable() end
        assert.same(results or now, now, text)
        results = now
      end
      local expected, got = { attend(q, k, v, mask), differentiate(q, k, v, g, mask) }, { predict(q, k, v, mask), train(q, k, v, g, mask) }
      for i, x in ipairs(expected) do backend.near(x, got[i], 4e-5 * math.max(1, x:abs():max():item()), text .. ", result " .. i) end
      assert.equal(1, count(predict:describe(), "attention"), text)
      local is_fused = name ~= "none" and 1 or 0
      assert.equal(is_fused, count(train:describe(), "attention_gradient"), text)
      assert.equal(is_fused == 1 and 0 or 1, count(train:describe(), "softmax"), text)
    end
  end)

  it("lets scores that a mask puts in place weigh what they do, where they are not small", function()
    local given = {}
    for i = 1, 3 do given[i] = flow.random.normal({ 1, 2, 300, 8 }, { seed = i }) * 0.3 end
    local mask = flow.logical_and(masks.causal(1, 300, 300), flow.reshape(flow.arange(300), { 1, 300 }):lt(40))
    for _, left_out in ipairs { -1, 0, -50, -1e4 } do
      local function weigh(q, k, v)
        return flow.matmul(flow.softmax(flow.where(mask, flow.matmul(q, k, { transpose_b = true }), left_out)), v)
      end
      local traced = flow.fn(weigh)
      backend.near(weigh(unpack(given)), traced(unpack(given)), 1e-5, tostring(left_out))
      assert.equal(1, count(traced:describe(), "attention"))
    end
  end)

  it("keeps no matrix of scores in training either, where that is large", function()
    local given = {}
    for i = 1, 4 do given[i] = flow.random.normal({ 1, 1, 1100, 8 }, { seed = i }) end
    local train = flow.fn(function(q, k, v, g) return differentiate(q, k, v, g) end)
    local got, expected = { train(unpack(given)) }, { differentiate(unpack(given)) }
    for i, x in ipairs(expected) do backend.near(x, got[i], 4e-5 * math.max(1, x:abs():max():item()), i) end
    assert.equal(1, count(train:describe(), "attention_gradient"))
    local input = flow.Input { 1100, 8 }
    local model = flow.Model { inputs = input, outputs = layers.Attention() { input, layers.Dense(8)(input) } }
    model:compile { optimizer = "sgd", loss = "mse" }
    model:train_on_batch(flow.zeros { 1, 1100, 8 }, flow.zeros { 1, 1100, 8 })
    local plan = steps.describe(model._steps[#model._steps])
    assert.is_true(tonumber(plan:match "arena (%d+) bytes") + tonumber(plan:match "local (%d+)") < 1100 * 1100 * 4, plan)
  end)

  it("stays several ops where weights are read, matrices are small, dropout changes weights, or heads share keys", function()
    local function plan(f, ...)
      local traced = flow.fn(f)
      traced(...)
      return traced:describe()
    end
    local large, small = flow.zeros { 1, 2, 300, 8 }, flow.zeros { 1, 2, 100, 8 }
    assert.equal(0, count(plan(attend, small, small, small), "attention"))
    assert.equal(0, count(plan(function(q, k, v)
      local weights = flow.softmax(flow.matmul(q, k, { transpose_b = true }))
      return flow.matmul(weights, v), weights
    end, large, large, large), "attention"))
    assert.equal(0, count(plan(function(q, k, v)
      return flow.matmul(flow.softmax(flow.matmul(q, k, { transpose_b = true }), 3), v)
    end, large, large, large), "attention"))
    assert.equal(0, count(plan(attend, large, large[{ {}, { 1, 1 } }], large), "attention"))
  end)

  it("is what the layers compute in predictions and in training steps", function()
    local t, width = 280, 24
    for case, make in ipairs {
      function(x) return layers.MultiHeadAttention(3, 8)(x, x, { use_causal_mask = true }) end,
      function(x) return layers.MultiHeadAttention(2, 8, { value_dim = 5 })(x, layers.Dense(width)(x), { use_causal_mask = true }) end,
      function(x) return layers.GroupQueryAttention(8, 6, 2)(x, x, { use_causal_mask = true }) end,
    } do
      flow.random.set_seed(case)
      local input = flow.Input { t, width }
      local model = flow.Model { inputs = input, outputs = make(input) }
      model:compile { optimizer = flow.optimizers.SGD(0.5), loss = "mse" }
      for _, batch in ipairs { 2, 1 } do
        local x = flow.random.normal({ batch, t, width }, { seed = case })
        backend.near(model(x), model:predict(x, { verbose = 0 }), 1e-5, "layer " .. case)
        assert.equal(1, count(steps.describe(model._steps[#model._steps]), "attention"), case)
        local list, expected, tape = model.trainable_variables, {}, flow.GradientTape()
        local y = flow.zeros(model(x).shape)
        local loss = tape:record(function() return flow.losses.MeanSquaredError()(y, model(x)) end)
        for i, gradient in ipairs(tape:gradient(loss, list)) do expected[i] = list[i]:value() - 0.5 * gradient end
        model:train_on_batch(x, y)
        assert.equal(1, count(steps.describe(model._steps[#model._steps]), "attention_gradient"), case)
        -- the gradient of a key's bias is 0 but for rounding
        for i, variable in ipairs(list) do backend.near(expected[i] + 1, variable:value() + 1, 1e-6, variable.name) end
      end
    end
  end)

  it("is what flow.dot_product_attention computes, whose products transpose and copy nothing", function()
    local q, k = flow.random.normal({ 2, 300, 4, 8 }, { seed = 1 }), flow.random.normal({ 2, 310, 4, 8 }, { seed = 2 })
    local mask = masks.lengths(2, 300, 310)
    for name, options in pairs { plain = {}, causal = { is_causal = true }, both = { is_causal = true, mask = mask, scale = 0.3 } } do
      local traced = flow.fn(function(x, y) return flow.dot_product_attention(x, y, y, options) end)
      backend.near(flow.dot_product_attention(q, k, k, options), traced(q, k), 1e-5, name)
      local plan = traced:describe()
      assert.same({ 1, 0, 1 }, { count(plan, "attention"), count(plan, "reshape"), count(plan, "transpose") }, plan)
    end
  end)

end)

describe("attention on a GPU", function()
  local function on_gpu(name, test)
    it(name, function()
      if emulated.missing() then
        pending(emulated.missing())
        return
      end
      test()
    end)
  end

  on_gpu("is computed by tiles, whatever its sizes and mask, with the same bits each time", function()
    local first, last = case_numbers(16)
    for case = first, last do
      math.randomseed(case)
      local number = math.random
      local b, h, t, s = number(2), number(3), number(16, 150), number(150)
      local d, e = ({ 1, 16, 33, 64, 130 })[number(5)], ({ 1, 5, 32, 100 })[number(4)]
      local name = ({ "none", "causal", "lengths", "rows", "holes" })[case % 5 + 1]
      local text = ("case %d: %d x %d, %d steps of %d, %d keys of %d, mask %s"):format(case, b, h, t, d, s, e, name)
      local function draw(steps_of, width, seed) return flow.random.normal({ b, h, steps_of, width }, { seed = case * 10 + seed }) end
      local given = { draw(t, d, 1) / math.sqrt(d), draw(s, d, 2), draw(s, e, 3), draw(t, e, 4), masks[name](b, t, s, case) }
      local expected = { attend(given[1], given[2], given[3], given[5]), differentiate(unpack(given, 1, 5)) }
      flow.device("gpu:0", function()
        local predict = flow.fn(function(q, k, v, _, mask) return attend(q, k, v, mask) end)
        local train = flow.fn(function(...) return differentiate(...) end)
        local got = { predict(unpack(given, 1, 5)), train(unpack(given, 1, 5)) }
        for i, x in ipairs(expected) do backend.near(x, got[i], 4e-5 * math.max(1, x:abs():max():item()), text .. ", result " .. i) end
        local again = { predict(unpack(given, 1, 5)), train(unpack(given, 1, 5)) }
        for i, x in ipairs(got) do
          assert.same(flow.view(x, "int32"):flatten():totable(), flow.view(again[i], "int32"):flatten():totable(), text)
        end
        assert.equal(1, count(predict:describe(), "attention"), text)
        assert.same({ 1, 1, 0 }, { count(train:describe(), "attention"), count(train:describe(), "attention_gradient"),
          count(train:describe(), "softmax") }, text)
      end)
    end
  end)

  on_gpu("is what the layers compute in predictions and in training steps, in float32 and in 16 bits", function()
    finally(function() flow.mixed_precision.set_global_policy("float32") end)
    local t, width = 150, 24
    for policy, tolerance in pairs { float32 = 1e-6, mixed_bfloat16 = 3e-2, mixed_float16 = 4e-3 } do
      flow.mixed_precision.set_global_policy(policy)
      for _, make in ipairs {
        function(x, y) return layers.MultiHeadAttention(3, 8)(x, y) end,
        function(x, y) return layers.MultiHeadAttention(3, 8)(x, y, { use_causal_mask = true }) end,
        function(x, y) return layers.GroupQueryAttention(16, 4, 2)(x, y, { use_causal_mask = true }) end,
      } do
        local function train(device)
          local results
          flow.device(device, function()
            flow.random.set_seed(7)
            local input = flow.Input { t, width }
            local model = flow.Model { inputs = input, outputs = make(input, layers.Dense(width)(input)) }
            model:compile { optimizer = flow.optimizers.SGD(0.5), loss = "mse" }
            local x = flow.random.normal({ 2, t, width }, { seed = 3 })
            results = { model:predict(x, { verbose = 0 }) }
            model:train_on_batch(x, x * 0.5)
            local plan = steps.describe(model._steps[#model._steps])
            if device == "gpu:0" then
              assert.same({ 1, 1, 0, 0 }, { count(plan, "attention"), count(plan, "attention_gradient"), count(plan, "softmax"),
                count(plan, "transpose") }, plan)
              assert.is_truthy(plan:find("attention_gradient [^\n]*, 2} %->"), plan)      -- it reads what attention kept of each row
            end
            for _, variable in ipairs(model.trainable_variables) do results[#results + 1] = variable:value() end
          end)
          return results
        end
        local expected, got = train("cpu:0"), train("gpu:0")
        for i, x in ipairs(expected) do
          backend.near(flow.cast(x, "float32") + 1, flow.cast(got[i], "float32") + 1, tolerance, policy .. ", result " .. i)
        end
      end
    end
  end)

  on_gpu("stays several ops where rows are longer than its kernels take, or few", function()
    flow.device("gpu:0", function()
      for _, shape in ipairs { { 1, 1, 20, 300 }, { 1, 1, 15, 8 } } do
        local traced, x = flow.fn(attend), flow.zeros(shape)
        traced(x, x, x)
        assert.equal(0, count(traced:describe(), "attention"))
      end
    end)
  end)
end)
