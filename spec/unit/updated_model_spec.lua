-- updated_model_spec.lua: on several replicas, sums and outputs of what was read from a variable after an update in the same step: every
-- optimizer, random chains of updates, and steps that fail after it. FLOW_CASES=10000 tries this many chains.
require "spec.support.init"
local flow = require "flow"
local distribute = flow.distribute

flow.log.sink = function() end
flow.config.set_logical_devices("cpu", 3)
flow.config.set_precision("exact")
local mirrored, alone = distribute.MirroredStrategy(), distribute.get_strategy()

local function context() return distribute.get_replica_context() end

local function near(expected, found, what)
  assert.equal(#expected, #found)
  for i = 1, #expected do
    assert.truthy(math.abs(expected[i] - found[i]) <= 2e-5 * math.max(1, math.abs(expected[i])),
      ("%s: number %d is %.9g, expected %.9g"):format(what, i, found[i], expected[i]))
  end
end

local function values_of(list)
  local numbers = {}
  for _, v in ipairs(list) do
    for _, number in ipairs(v:value():to("float64"):reshape({ -1 }):totable()) do numbers[#numbers + 1] = number end
  end
  return numbers
end

-- Runs step(x) of a strategy on batches of 5 rows; three replicas have 2, 2 and 1 of them.
local function run_batches(strategy, step, count)
  local x = flow.random.normal({ 5 * count, 3 }, { seed = 9 })
  local sums = {}
  for batch in strategy:experimental_distribute_dataset(flow.data.Dataset.from_tensor_slices(x):batch(5)):iter() do
    sums[#sums + 1] = strategy:reduce("sum", (strategy:run(step, { batch }))):item()
  end
  return sums
end

local OPTIMIZERS = {
  { "SGD", { learning_rate = 0.1 } }, { "SGD", { learning_rate = 0.1, momentum = 0.9, nesterov = true } },
  { "Adam", { learning_rate = 0.1, amsgrad = true } }, { "AdamW", { learning_rate = 0.1, weight_decay = 0.1 } },
  { "RMSprop", { learning_rate = 0.05, momentum = 0.5, centered = true } }, { "Adagrad", { learning_rate = 0.1 } },
  { "Adadelta", { learning_rate = 1 } }, { "Adamax", { learning_rate = 0.1 } }, { "Nadam", { learning_rate = 0.1 } },
  { "Ftrl", { learning_rate = 0.1 } }, { "Lamb", { learning_rate = 0.1 } }, { "Adafactor", { learning_rate = 0.1 } },
  { "Muon", { learning_rate = 0.1 } },
}

describe("on replicas, what was updated before in the same step", function()
  for _, case in ipairs(OPTIMIZERS) do
    it(("has the new values of %s"):format(case[1]), function()
      local function train(strategy)
        local first, second, one, two
        strategy.scope(function()
          first = { flow.Variable(flow.random.normal({ 3, 2 }, { seed = 1 })), flow.Variable { 0.5, -0.5 } }
          second = { flow.Variable(flow.random.normal({ 2, 4 }, { seed = 2 })) }
          one, two = flow.optimizers[case[1]](case[2]), flow.optimizers[case[1]](case[2])
        end)
        local function through(x) return ((x:matmul(first[1]) + first[2]):tanh():matmul(second[1]) ^ 2):sum() / 5 end
        local function step(x)
          for _, turn in ipairs { { one, first }, { two, second }, { one, first } } do
            local tape = flow.GradientTape()
            local loss = tape:record(function() return through(x) end)
            turn[1]:apply_gradients(tape:gradient(loss, turn[2]), turn[2])
          end
          return through(x)
        end
        local losses = run_batches(strategy, step, 4)
        local numbers = values_of(first)
        for _, list in ipairs { second, one.variables, two.variables } do
          for _, number in ipairs(values_of(list)) do numbers[#numbers + 1] = number end
        end
        return losses, numbers
      end
      local losses, numbers = train(alone)
      local found_losses, found = train(mirrored)
      near(losses, found_losses, "losses")
      near(numbers, found, "variables")
    end)
  end

  it("is given to every replica that returns it", function()
    local v, optimizer
    mirrored.scope(function() v, optimizer = flow.Variable { 1, 2 }, flow.optimizers.SGD(0.5) end)
    local x = mirrored:experimental_distribute_values_from_function(function(c) return flow.tensor(c.replica_id_in_sync_group + 1) end)
    for run = 1, 2 do
      local new, sum, product = mirrored:run(function(own)
        local tape = flow.GradientTape()
        local loss = tape:record(function() return (v:value() * own):sum() end)
        optimizer:apply_gradients(tape:gradient(loss, { v }), { v })
        return v:value(), v:value():sum(), v:value() * own
      end, { x })
      local a, b = 1 - 3 * run, 2 - 3 * run                       -- the gradients of the replicas are 1, 2 and 3
      for i = 1, 3 do
        assert.same({ a, b }, new.values[i]:totable())
        assert.equal(a + b, sum.values[i]:item())
        assert.same({ a * i, b * i }, product.values[i]:totable())
      end
    end
  end)

  -- A chain of assignments and sums over three variables, the same in Lua numbers: x is 1, 2 and 3 on the replicas.
  it("follows the order of the trace, in random chains", function()
    local count = tonumber(os.getenv "FLOW_CASES") or 40
    local seed = tonumber(os.getenv "FLOW_SEED") or 1
    local x = mirrored:experimental_distribute_values_from_function(function(c) return flow.tensor(c.replica_id_in_sync_group + 1) end)
    for case = 1, count do
      math.randomseed(seed * 100000 + case)
      local chain = {}
      for i = 1, math.random(1, 9) do chain[i] = { math.random(5), math.random(3), math.random(3) } end
      local variables, numbers = {}, {}
      mirrored.scope(function()
        for i = 1, 3 do variables[i], numbers[i] = flow.Variable(i), i end
      end)
      local function step(own)
        local total = 0
        for _, link in ipairs(chain) do
          local kind, to, from = unpack(link)
          if kind == 1 then variables[to]:assign_add(1) end
          if kind == 2 then variables[to]:assign(variables[from]:value() * 0.5) end
          if kind == 3 then variables[to]:assign(context():all_reduce("sum", own * variables[from]:value()) * 0.25) end
          if kind == 5 then total = total + own * variables[to]:value() end
          if kind == 4 then total = total + context():all_reduce("sum", own + variables[to]:value()) end
        end
        return flow.tensor(0) + total
      end
      local expected, of_own
      for _ = 1, 2 do
        expected, of_own = 0, 0
        for _, link in ipairs(chain) do
          local kind, to, from = unpack(link)
          if kind == 1 then numbers[to] = numbers[to] + 1 end
          if kind == 2 then numbers[to] = numbers[from] * 0.5 end
          if kind == 3 then numbers[to] = 6 * numbers[from] * 0.25 end
          if kind == 5 then of_own = of_own + numbers[to] end
          if kind == 4 then expected = expected + 6 + 3 * numbers[to] end
        end
      end
      local result
      for _ = 1, 2 do result = mirrored:run(step, { x }) end
      local what = ("seed %d, case %d"):format(seed, case)
      for i, entry in ipairs(result.values) do near({ expected + i * of_own }, { entry:item() }, what) end
      near(numbers, values_of(variables), what)
    end
  end)

  -- Steps of updates by three optimizers of any of four variables, assignments, sums over replicas and readings, in any order.
  it("has the new values of optimizers whose variables overlap, in random steps", function()
    local count = tonumber(os.getenv "FLOW_CASES") or 40
    local seed = tonumber(os.getenv "FLOW_SEED") or 1
    local shapes = { { 3, 2 }, { 2 }, { 2, 4 }, {} }
    local classes = { { "SGD", { learning_rate = 0.02 } }, { "SGD", { learning_rate = 0.01, momentum = 0.9 } },
                      { "Adam", { learning_rate = 0.02, epsilon = 0.01 } }, { "Adagrad", { learning_rate = 0.02, epsilon = 0.01 } },
                      { "Lion", { learning_rate = 0.01 } } }
    local function some_of(n)
      local list = {}
      for i = 1, n do table.insert(list, math.random(#list + 1), i) end
      for _ = 1, math.random(n) - 1 do table.remove(list) end
      return list
    end
    for case = 1, count do
      math.randomseed(seed * 100000 + case)
      local program, kinds = {}, {}
      for i = 1, 3 do kinds[i] = classes[math.random(#classes)] end
      for i = 1, math.random(2, 6) do program[i] = { math.random(6), math.random(3), some_of(4), math.random(4) } end
      local function train(strategy)
        local variables, optimizers = {}, {}
        strategy.scope(function()
          for i, shape in ipairs(shapes) do variables[i] = flow.Variable(flow.random.normal(shape, { seed = i })) end
          for i, kind in ipairs(kinds) do optimizers[i] = flow.optimizers[kind[1]](kind[2]) end
        end)
        local a, b, c, d = unpack(variables)
        local function through(x) return (((x:matmul(a) + b):tanh():matmul(c) + d):tanh() ^ 2):sum() / 5 end
        local function step(x)
          local total = through(x)
          for _, link in ipairs(program) do
            local kind, which, list, to = unpack(link)
            if kind <= 3 then
              local taken = {}
              for i, index in ipairs(list) do taken[i] = variables[index] end
              local tape = flow.GradientTape()
              local loss = tape:record(function() return through(x) + (a * a):sum() * 1e-2 / strategy.num_replicas_in_sync end)
              optimizers[which]:apply_gradients(tape:gradient(loss, taken), taken)
            end
            if kind == 4 then variables[to]:assign(variables[to]:value() * 0.9) end
            if kind == 5 then variables[to]:assign_add(context():all_reduce("sum", through(x)) * 0.01) end
            if kind == 6 then total = total + through(x) end
          end
          return total
        end
        local losses, numbers = run_batches(strategy, step, 2), values_of(variables)
        for _, o in ipairs(optimizers) do
          for _, number in ipairs(values_of(o.variables)) do numbers[#numbers + 1] = number end
        end
        return losses, numbers
      end
      local what = ("seed %d, case %d"):format(seed, case)
      local losses, numbers = train(alone)
      local found_losses, found = train(mirrored)
      near(losses, found_losses, what .. ": losses")
      near(numbers, found, what .. ": variables")
    end
  end)

  it("is undone, as everything, where the step fails after the update", function()
    local first, second, one, two
    mirrored.scope(function()
      first, second = flow.Variable(flow.random.normal({ 3, 2 }, { seed = 1 })), flow.Variable(flow.random.normal({ 2, 4 }, { seed = 2 }))
      one, two = flow.optimizers.Adam(0.1), flow.optimizers.Adam(0.1)
    end)
    local crossentropy = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
    local function step(x, y)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (x:matmul(first) ^ 2):sum() end)
      one:apply_gradients(tape:gradient(loss, { first }), { first })
      tape = flow.GradientTape()
      loss = tape:record(function() return crossentropy(y, x:matmul(first):matmul(second)) end)
      two:apply_gradients(tape:gradient(loss, { second }), { second })
      return loss
    end
    local x = flow.random.normal({ 6, 3 }, { seed = 3 })
    local function run(labels)
      local pass = mirrored:experimental_distribute_dataset(flow.data.Dataset.from_tensor_slices({ x, labels }):batch(6)):iter()
      return mirrored:run(step, { pass:next() })
    end
    local function everything()
      local numbers = values_of { first, second }
      for _, o in ipairs { one, two } do
        for _, number in ipairs(values_of(o.variables)) do numbers[#numbers + 1] = number end
      end
      return numbers
    end
    local good, bad = flow.tensor({ 0, 1, 2, 3, 0, 1 }, { dtype = "int32" }), flow.tensor({ 0, 1, 2, 3, 0, 9 }, { dtype = "int32" })
    run(good)
    local before = everything()
    local ok, message = pcall(run, bad)
    assert.is_false(ok)
    assert.truthy(tostring(message):find("label 9", 1, true), tostring(message))
    assert.same(before, everything())
    run(good)
    local after = everything()
    for i = 1, 6 do assert.truthy(after[i] ~= before[i]) end
  end)
end)
