-- strategy_spec.lua: MultiWorkerMirroredStrategy between real processes, started by flowlua launch: what workers know of each other, values
-- and data sets that are split over all, and how a cluster ends.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"


local BEGIN = [[
  local flow = require "flow"
  local Dataset = flow.data.Dataset
  local index = tonumber(os.getenv("TF_CONFIG"):match('"index":(%d)'))
  local function open(options) return flow.distribute.MultiWorkerMirroredStrategy(options or {}) end
  local function rows(x)
    if flow.is_tensor(x) then return "{" .. table.concat(x:totable(), " ") .. "}" end
    local parts = {}
    for i, part in ipairs(x.values or { x }) do parts[i] = x.values and rows(part) or "{" .. table.concat(x, " ") .. "}" end
    return table.concat(parts)
  end
]]

local function launch(script, environment)
  return clusters.launch(script, { begin = BEGIN, environment = environment, launch = "--kill-after 3" })
end

describe("workers", function()
  it("know who they are, and have the chief's random state", function()
    local said, output, code = launch([[
      if index == 1 then flow.random.uniform { 3 } flow.set_random_seed(9) end
      local strategy = open()
      local r = strategy.cluster_resolver
      print("=", r.task_type, r.task_id, r.is_chief, r.num_workers, strategy.num_replicas_in_sync, strategy.extended.should_checkpoint)
      print("=", flow.random.uniform({ 1 }):item(), flow.random.normal({ 1 }):item())
      local order = {}
      for x in Dataset.range(20):shuffle(20):batch(20):iter() do order = x:totable() end
      print("=", table.concat(order, " "))
      local dense = flow.layers.Dense(1)
      dense:build { -1, 3 }
      print("=", table.concat(dense.kernel:reshape({ 3 }):totable(), " "))
      print("=", pcall(open))
      local model = strategy.scope(function() return flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) } end)
      model:compile { optimizer = "sgd", loss = "mse" }
      strategy:close()
      strategy:close()
      print("=", pcall(strategy.reduce, strategy, "sum", 1))
      print("=", pcall(strategy.scope, function() end))
      print("=", pcall(model.fit, model, flow.ones { 2, 2 }, flow.ones { 2, 1 }))]])
    assert.equal(0, code, output)
    assert.equal("worker\t0\ttrue\t2\t2\ttrue", said[0][1])
    assert.equal("worker\t1\tfalse\t2\t2\tfalse", said[1][1])
    for line = 2, 4 do assert.equal(said[0][line], said[1][line]) end
    assert.truthy(said[1][4]:find("%d"))
    assert.truthy(said[0][5]:find("^false\t.*takes part in its cluster already"), said[0][5])
    assert.truthy(said[0][6]:find("^false\t.*this strategy was closed"), said[0][6])
    assert.truthy(said[0][7]:find("^false\t.*this strategy was closed"), said[0][7])
    assert.truthy(said[0][8]:find("^false\t.*fit: the strategy in whose scope the model was made was closed"), said[0][8])
    assert.truthy(output:find("task_type = 'worker', task_id = 1, num_workers = 2, local_devices = (cpu:0), communication = AUTO", 1, true))
  end)

  it("reduce and gather what all of their replicas have", function()
    local said, output, code = launch([[
      flow.config.set_logical_devices("cpu", 2)
      local strategy = open()
      local function values(f)
        return strategy:experimental_distribute_values_from_function(function(c) return f(c.replica_id_in_sync_group) end)
      end
      local x = values(function(i) return flow.tensor { i, 10 } end)
      print("=", strategy.num_replicas_in_sync, rows(strategy:reduce("sum", x)), rows(strategy:reduce("mean", x)))
      local uneven = values(function(i) return flow.full({ i * 40 }, i) end)
      print("=", #strategy:gather(uneven), strategy:gather(uneven):to("float64"):sum():item(), strategy:reduce("mean", uneven, 1):item())
      local whole = values(function(i) return flow.tensor({ 2 ^ 40 + i }, { dtype = "int64" }) end)
      print("=", strategy:reduce("sum", whole):item() - 4 * 2 ^ 40)
      print("=", rows(strategy:gather(values(function(i) return flow.tensor { { i }, { 10 + i } } end), 2):reshape { 8 }))
      print("=", pcall(strategy.reduce, strategy, "sum", values(function(i) return flow.ones { index + 1 } end)))
      print("=", strategy:reduce("sum", (strategy:run(function(v) return v:sum() end, { x }))):item())]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.equal("4\t{6 40}\t{1.5 10}", said[worker][1])
      assert.equal(("240\t%d\t%s"):format(40 + 160 + 360, said[0][2]:match("[%d.]+$")), said[worker][2])
      assert.near(560 / 240, tonumber(said[worker][2]:match("[%d.]+$")), 1e-6)
      assert.equal("6", said[worker][3])
      assert.equal("{0 1 2 3 10 11 12 13}", said[worker][4])
      assert.truthy(said[worker][5]:find "strategy:reduce: worker:0 [%d.:]+ has float32 {1}, worker:1 [%d.:]+ has float32 {2};",
        said[worker][5])
      assert.equal("46", said[worker][6])
    end
  end)

  it("name what they would do differently with their values", function()
    local said, output, code = launch([[
      local strategy, ones = open(), flow.ones { 2, 2 }
      local function mine(first, second) return (index == 0 and first or second)() end
      local function try(first, second)
        local ok, problem = pcall(mine, first, second)
        print("=", ok, (tostring(problem):gsub(" [%d.]+:%d+", "")))
      end
      local function reduce(how, axis) return function() return strategy:reduce(how, ones, axis) end end
      local function gather(axis, value) return function() return strategy:gather(value or ones, axis) end end
      try(reduce "sum", reduce "mean")
      try(reduce "sum", reduce("sum", 1))
      try(reduce("mean", 1), reduce("mean", 2))
      try(reduce "sum", gather(1))
      try(gather(1), gather(2))
      try(gather(1), gather(1, flow.ones { 2, 3 }))
      try(gather(3), gather(3))
      try(gather(1.5), gather(1.5))
      try(gather(2), gather(2, flow.ones { 2, 3 }))]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      local function expect(line, sentence) assert.truthy(said[worker][line]:find(sentence, 1, true), said[worker][line]) end
      expect(1, "worker:0 reduces by SUM, worker:1 reduces by MEAN: do all workers run the same program?")
      expect(2, "worker:0 reduces by SUM, worker:1 reduces by SUM over axis 1:")
      expect(3, "worker:0 reduces by MEAN over axis 1, worker:1 reduces by MEAN over axis 2:")
      expect(4, "worker:0 reduces by SUM, worker:1 gathers along axis 1:")
      expect(5, "worker:0 gathers along axis 1, worker:1 gathers along axis 2:")
      expect(6, "strategy:gather: worker:0 has float32 {2, 2}, worker:1 has float32 {2, 3}; they may differ along axis 1 only")
      expect(7, "strategy:gather: there is no axis 3 in a value of 2 dimensions")
      expect(8, "strategy:gather: axis is a whole number from 1, or negative, from the last one, got the number 1.5")
      expect(9, "true")
    end
  end)

  it("add up what a table holds by name, each to its own", function()
    local said, output, code = launch([[
      local strategy = open()
      local f = flow.fn(function(x)
        local own = {}
        for i, name in ipairs { "loss", "accuracy", "count", "total", "worst", "best", "first", "last" } do own[name] = x * 10 ^ i end
        return flow.distribute.get_replica_context():all_reduce("sum", own)
      end)
      local sums, parts = strategy:run(f, { flow.tensor { index + 1 } }), {}
      for i, name in ipairs { "loss", "accuracy", "count", "total", "worst", "best", "first", "last" } do
        parts[i] = ("%d"):format(sums[name]:item() / 10 ^ i + 0.5)
      end
      print("=", table.concat(parts, " "))]])
    assert.equal(0, code, output)
    for worker = 0, 1 do assert.equal("3 3 3 3 3 3 3 3", said[worker][1], output) end
  end)

  it("do not add up steps that sum in another order, or update by other rules", function()
    local said, output, code = launch([[
      local strategy = open()
      local function try(f)
        local ok, problem = pcall(strategy.run, strategy, flow.fn(f), { flow.ones { 2 } })
        print("=", ok, tostring(problem):match "different plans")
      end
      local function sum_all(names)
        return function(x)
          local own, sums = { first = x * 2, second = x * 3 }, {}
          for _, name in ipairs(names) do sums[name] = flow.distribute.get_replica_context():all_reduce("sum", own[name]) end
          return sums
        end
      end
      try(sum_all { "first", "second" })
      try(sum_all(index == 0 and { "first", "second" } or { "second", "first" }))
      local v
      strategy.scope(function() v = flow.Variable { 1, 2 } end)
      local function update(beta)
        local optimizer
        strategy.scope(function() optimizer = flow.optimizers.Adam { learning_rate = 0.1, beta_1 = beta } end)
        return function(x)
          local tape = flow.GradientTape()
          optimizer:apply_gradients(tape:gradient(tape:record(function() return (v * x):sum() end), { v }), { v })
        end
      end
      try(update(0.9))
      try(update(index == 0 and 0.9 or 0.8))]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.same({ "true\tnil", "false\tdifferent plans", "true\tnil", "false\tdifferent plans" }, said[worker], output)
    end
  end)

  it("do not make steps that update with other numbers: rates, norms, decays", function()
    local said, output, code = launch([[
      local strategy = open()
      local v, optimizer
      strategy.scope(function() v = flow.Variable { 1, 2 } end)
      local function step(class, options, scale)
        strategy.scope(function() optimizer = flow.optimizers[class](options) end)
        return flow.fn(function(x)
          local tape = flow.GradientTape()
          optimizer:apply_gradients(tape:gradient(tape:record(function() return (v * x):sum() / (scale or 1) end), { v }), { v })
        end)
      end
      local function try(f)
        local ok, problem = pcall(strategy.run, strategy, f, { flow.ones { 2 } })
        print("=", ok and "runs" or tostring(problem):match "different plans" or tostring(problem):match "learning rates" or problem)
      end
      local function own(a, b) return index == 0 and a or b end
      try(step("SGD", { learning_rate = 0.1, clipnorm = 1 }))
      try(step("SGD", { learning_rate = own(0.1, 0.2) }))
      try(step("RMSprop", { learning_rate = own(0.1, 0.2) }))
      try(step("Adagrad", { learning_rate = 0.1, weight_decay = own(0.1, 0.2) }))
      for _, option in ipairs { "clipnorm", "global_clipnorm", "clipvalue" } do
        try(step("Adam", { learning_rate = 0.1, [option] = own(1, 2) }))
      end
      try(step("SGD", { learning_rate = flow.optimizers.schedules.ExponentialDecay(own(0.1, 0.2), 10, 0.9) }))
      local f = step("SGD", { learning_rate = 0.1 })
      try(f)
      optimizer.learning_rate = own(0.1, 0.05)
      try(f)
      optimizer.learning_rate = 0.1
      try(f)
      -- What is divided before the sum is each worker's own: its number of rows.
      try(step("SGD", { learning_rate = 0.1 }, index + 1))]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.same({ "runs", "learning rates", "learning rates", "different plans", "different plans", "different plans", "different plans",
                    "different plans", "runs", "learning rates", "runs", "runs" }, said[worker], output)
    end
  end)

  it("begin their own loop with the chief's variables", function()
    local said, output, code = launch([[
      local strategy = open()
      flow.set_random_seed(index)
      local optimizer, model, steps = flow.optimizers.SGD(0.1)
      strategy.scope(function()
        model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(4, { activation = "tanh" }), flow.layers.Dense(1) }
        steps = flow.Variable(100 * index)
      end)
      local late = flow.layers.Dense(1)      -- has variables when the function is traced
      local function sums()
        local list = {}
        for _, v in ipairs(model.variables) do list[#list + 1] = ("%.9g"):format(v:sum():item()) end
        return table.concat(list, " ")
      end
      print("=", sums())
      local set = strategy:experimental_distribute_dataset(Dataset.from_tensor_slices { flow.ones { 6, 3 }, flow.ones { 6, 1 } }:batch(4))
      local function step(x, y)
        local tape, loss = flow.GradientTape()
        loss = tape:record(function() return (model(x) + late(x) - y):square():sum() / 4 end)
        local variables = { unpack(model.trainable_variables) }
        for _, v in ipairs(late.trainable_variables) do variables[#variables + 1] = v end
        optimizer:apply_gradients(tape:gradient(loss, variables), variables)
        steps:assign_add(1)
        return loss
      end
      for x, y in set:iter() do strategy:run(step, { x, y }) end
      print("=", sums(), ("%.9g"):format(late.kernel:sum():item()), steps:item())
      local others = flow.Variable(flow.zeros { index + 1 })
      print("=", pcall(strategy.run, strategy, function() return others:sum() end))]])
    assert.equal(0, code, output)
    assert.equal(said[0][1], said[1][1])
    assert.equal(said[0][2], said[1][2])
    assert.truthy(said[0][2]:find("\t2$"), said[0][2])
    assert.truthy(said[1][3]:find("variables of the function", 1, true), said[1][3])
  end)

  it("share the batches of one data set, or read their own files, and end together", function()
    local files = { support.file("a.tfrecord", ""), support.file("b.tfrecord", "") }
    local flow = require "flow"
    for i, path in ipairs(files) do
      local writer = flow.data.TFRecordWriter(path)
      for k = 1, i == 1 and 5 or 1 do writer:write(("%d%d"):format(i, k)) end
      writer:close()
    end
    local said, output, code = launch(([[
      local strategy = open()
      local shared = Dataset.from_tensor_slices { flow.arange(9), flow.ones { 9, 2 } }:batch(4)
      for x, y in strategy:experimental_distribute_dataset(shared):iter() do
        print("=", rows(x), y.shape[1], y.shape[2])
      end
      local records = flow.data.TFRecordDataset { %q, %q }:batch(4)
      for x in strategy:experimental_distribute_dataset(records):iter() do print("=", rows(x)) end
      local own = strategy:distribute_datasets_from_function(function(context)
        return Dataset.range(context.input_pipeline_id * 3 + 1):batch(context:get_per_replica_batch_size(4))
      end)
      for x in own:iter() do print("=", rows(x)) end
      local steps = 0
      for x in strategy:experimental_distribute_dataset(Dataset.range(4):repeat_():batch(4)):iter() do
        steps = steps + 1
        if steps == 3 then break end
      end
      print("=", steps)]]):format(files[1], files[2]))
    assert.equal(0, code, output)
    assert.same({ "{0 1}\t2\t2", "{4 5}\t2\t2", "{8}\t1\t2", "{11 12}", "{13 14}", "{15}", "{0}", "{}", "3" }, said[0])
    assert.same({ "{2 3}\t2\t2", "{6 7}\t2\t2", "{}\t0\t2", "{21}", "{}", "{}", "{0 1}", "{2 3}", "3" }, said[1])
  end)

  it("find out that they would shuffle shared data in different ways", function()
    local said, output, code = launch([[
      local strategy = open()
      local function pass() return strategy:experimental_distribute_dataset(Dataset.range(8):shuffle(8):batch(8)):iter() end
      local first = pass()()
      print("=", #strategy:gather(first))
      print("=", strategy:reduce("sum", first, 1):item())
      if index == 1 then flow.random.uniform { 1 } end
      print("=", pcall(pass))
      local model = strategy.scope(function() return flow.Sequential { flow.layers.Input { 1 }, flow.layers.Dense(1) } end)
      model:compile { optimizer = "sgd", loss = "mse" }
      print("=", pcall(model.fit, model, Dataset.from_tensor_slices { flow.ones { 4, 1 }, flow.ones { 4, 1 } }:shuffle(4):batch(2)))
      local ours = Dataset.range(8):batch(2)
      local function try(own) print("=", pcall(function() strategy:experimental_distribute_dataset(own):iter() end)) end
      try(index == 0 and ours or ours:filter(function(x) return x:sum():ge(0) end))
      try(index == 0 and ours:repeat_() or ours:take(1))]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.same({ "8", "28" }, { said[worker][1], said[worker][2] })
      assert.truthy(said[worker][4]:find("the workers do not have the same data set: in line 2 worker:0", 1, true), output)
      assert.truthy(said[worker][3]:find("the workers do not have the same data set: in line 2 worker:0", 1, true), output)
      assert.matches('worker:0 %S+ has "4 elements", worker:1 %S+ has "an unknown number of elements"', said[worker][5])
      assert.matches('worker:0 %S+ has "no end", worker:1 %S+ has "1 element"', said[worker][6])
    end
  end)

  it("begin to fit with the chief's values, slots and random numbers", function()
    local said, output, code = launch([[
      local strategy = open()
      if index == 1 then flow.random.uniform { 5 } end
      local function weights(model) return rows(model.layers[1].kernel:reshape { 3 }) end
      for _, input in ipairs { { flow.layers.Input { 3 } }, {} } do
        local model = strategy.scope(function()
          table.insert(input, flow.layers.Dense(1))
          return flow.Sequential(input)
        end)
        model:compile { optimizer = flow.optimizers.SGD { learning_rate = 0, momentum = 0.9 }, loss = "mse" }
        model:fit(flow.ones { 4, 3 }, flow.ones { 4, 1 }, { verbose = 0 })
        print("=", weights(model))
        if index == 1 then model:set_weights { flow.zeros { 3, 1 }, flow.ones { 1 } } end
        model:fit(flow.ones { 4, 3 }, flow.ones { 4, 1 }, { verbose = 0 })
        print("=", weights(model), model.layers[1].bias:item())
        print("=", flow.random.uniform({ 1 }):item())
      end]])
    assert.equal(0, code, output)
    assert.equal(6, #said[0], output)
    assert.same(said[0], said[1])
    assert.equal(said[0][1] .. "\t0", said[0][2])
  end)

  it("run a training loop that the user writes as one replica does, with two replicas each", function()
    local said, output, code = launch([[
      flow.config.set_logical_devices("cpu", 2)
      local strategy = open()
      local alone = flow.distribute.OneDeviceStrategy("cpu:0")
      local function train(place, batches, sum)
        flow.set_random_seed(5)
        local x, y = flow.random.normal { 20, 4 }, flow.random.normal { 20, 1 }
        local model, optimizer = nil, flow.optimizers.Adam(0.05)
        place.scope(function()
          model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(5, { activation = "tanh" }), flow.layers.Dense(1) }
        end)
        local mse = flow.losses.MeanSquaredError { reduction = "none" }
        local function step(a, b)
          local tape = flow.GradientTape()
          local loss = tape:record(function()
            return flow.nn.compute_average_loss(mse(b, model(a, { training = true })), { global_batch_size = 7 })
          end)
          optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
          return loss, flow.distribute.get_replica_context():all_reduce("sum", 1)
        end
        for a, b in batches(Dataset.from_tensor_slices { x, y }:batch(7)) do
          local loss, replicas = place:run(step, { a, b })
          replicas = place:experimental_local_results(replicas)[1]:item()
          print("=", ("%.4f %d"):format(place:reduce("sum", loss):item(), replicas))
        end
        local kernel = model.layers[2].kernel:reshape({ 5 }):totable()
        print("=", ("%.4f %.4f %.4f %.4f %.4f"):format(unpack(kernel)))
      end
      train(alone, function(ds) return ds:iter() end)
      train(strategy, function(ds) return strategy:experimental_distribute_dataset(ds):iter() end)]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      local lines = said[worker]
      assert.equal(8, #lines, output)
      for i = 1, 3 do assert.equal(lines[i]:match("^%S+") .. " 4", lines[4 + i]) end
      assert.equal(lines[4], lines[8])
      assert.equal(said[0][8], lines[8])
    end
  end)

  it("fit data sets that the strategy has distributed as one replica fits the whole", function()
    local said, output, code = launch([[
      flow.config.set_logical_devices("cpu", 2)
      local strategy, alone = open(), flow.distribute.OneDeviceStrategy("cpu:0")
      local function fit(place, distributed)
        flow.set_random_seed(3)
        local x, y = flow.random.normal { 24, 4 }, flow.random.normal { 24, 1 }
        local model
        place.scope(function()
          model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(8, { activation = "relu" }),
            flow.layers.Dropout(0.2, { name = "drop" }), flow.layers.Dense(1) }
          model:compile { optimizer = "adam", loss = "mse", metrics = { "mae" } }
        end)
        local history = model:fit(distributed(Dataset.from_tensor_slices { x, y }), { epochs = 3, verbose = 0 }).history
        print("=", ("%.5f %.5f"):format(history.loss[3], history.mae[3]), model.distribute_strategy)
      end
      fit(alone, function(rows) return rows:batch(10) end)
      fit(strategy, function(rows) return rows:batch(10) end)
      fit(strategy, function(rows) return strategy:experimental_distribute_dataset(rows:batch(10)) end)
      fit(alone, function(rows) return rows:batch(8) end)
      fit(strategy, function(rows)      -- each worker reads four rows of every eight
        return strategy:distribute_datasets_from_function(function(context)
          local order = rows:batch(4):shard(context.num_input_pipelines, context.input_pipeline_id):unbatch()
          return order:batch(context:get_per_replica_batch_size(8))
        end)
      end)]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      local lines = {}
      for i, text in ipairs(said[worker]) do lines[i] = text:match("^%S+ %S+") end
      assert.same({ lines[1], lines[1], lines[1], lines[4], lines[4] }, lines)
      assert.truthy(said[worker][3]:find("MultiWorkerMirroredStrategy", 1, true))
    end
  end)

  it("name what they would fit in different ways", function()
    local said, output, code = launch([[
      local strategy = open()
      local function fit(units, options)
        local model = strategy.scope(function() return flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(units) } end)
        model:compile { optimizer = "adam", loss = "mse" }
        options.verbose = 0
        model:fit(flow.ones { 4, 3 }, flow.ones { 4, units }, options)
      end
      print("=", pcall(fit, 1 + index, {}))
      print("=", pcall(fit, 1, { epochs = 1 + index }))
      print("=", pcall(fit, 1, { batch_size = 1 + index }))]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      for i, text in ipairs { "do not have the same .* worker:0 [%d.:]+ has .*1}.*2}", "same way to fit: in line 2 .* 1.* 2",
                              "same way to fit: in line 4 .* 1, shuffled.* 2, shuffled" } do
        assert.truthy(said[worker][i] and said[worker][i]:find(text), said[worker][i] or output)
      end
    end
  end)

  it("wait for each other at the end", function()
    local said, output, code = launch([[
      local strategy = open()
      if index == 1 then os.execute("sleep 0.3") end
      print("=", strategy:reduce("sum", 1):item())
      if index == 1 then os.execute("sleep 0.3") end]])
    assert.equal(0, code, output)
    assert.same({ "2" }, said[0])
    assert.same({ "2" }, said[1])
  end)

  it("say who failed when a script ends by an error", function()
    local said, output, code = launch([[
      local strategy = open()
      strategy:reduce("sum", 1)
      if index == 1 then error("wrong data") end
      print("=", pcall(strategy.reduce, strategy, "sum", 1))]])
    assert.truthy(code ~= 0, output)
    assert.truthy(output:find("wrong data", 1, true), output)
    assert.truthy(said[0][1] and said[0][1]:find("^false\t.*worker:1 127[%d.:]+ reports at step %d+: .*: wrong data"), output)
  end)

  it("name the step of the loop at which one was lost", function()
    local said, output = launch([[
      local strategy = open()
      local function first(x) return x + 1 end
      for step = 1, 40 do
        if step == 30 and index == 1 then os.execute("kill -9 $PPID") end
        local ok, problem = pcall(strategy.run, strategy, step % 2 == 0 and first or function(x)      -- traced again each time
          return flow.distribute.get_replica_context():all_reduce("SUM", x)
        end, { flow.tensor { 3 } })
        if not ok then
          print("=", problem)
          break
        end
      end]])
    local step = said[0][1] and said[0][1]:match("worker:1 127[%d.:]+ lost its connection.* at step (%d+)")
    assert.truthy(tonumber(step) == 29 or tonumber(step) == 30 or tonumber(step) == 31, output)
  end)

  it("take their times from the environment, and have the same ones", function()
    local said, output = launch([[
      if index == 1 then os.execute "sleep 1.5" end
      print("=", pcall(open))]], "FLOW_START_WITHIN=1 FLOW_HEARTBEAT=0.2 FLOW_DEAD_AFTER=2")
    assert.truthy(said[0][1]:find("gave up after 1 s, missing: worker:1 127[%d.:]+ %(no connection%)"), output)
    local code
    said, output, code = launch([[
      local options = index == 1 and { dead_after = 8 } or nil
      print("=", pcall(open, { communication_options = options }))]], "FLOW_DEAD_AFTER=9")
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.truthy(said[worker][1]:find("same settings: in line 2 .*dead_after: 9 s.*dead_after: 8 s"), output)
    end
    said, output = launch('print("=", pcall(open))', "FLOW_HEARTBEAT=often")
    assert.truthy(said[0][1]:find('FLOW_HEARTBEAT is a number of seconds above 0, got "often"', 1, true), output)
  end)

  it("must have as many replicas each", function()
    local said, output, code = launch([[
      flow.config.set_logical_devices("cpu", index + 1)
      print("=", pcall(open))
      print("=", pcall(open, flow.distribute.ClusterResolver { cluster = {} }))]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.truthy(said[worker][1]:find("the workers do not have the same settings: in line 1", 1, true), output)
      assert.truthy(said[worker][2]:find("^true"), output)
    end
  end)
end)
