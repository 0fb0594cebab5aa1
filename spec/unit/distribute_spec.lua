-- distribute_spec.lua: strategies of one replica, with the calls that scripts for many make, and what strategies are asked for.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local distribute = flow.distribute
local message_of = support.message_of

local function has(message, text)
  assert.truthy(message:find(text, 1, true), message)
end

describe("a strategy", function()
  local strategy = distribute.MirroredStrategy()

  it("runs a function in its scope, in both forms, and returns its results", function()
    local function inside() return distribute.get_strategy(), "two" end
    assert.same({ strategy, "two" }, { strategy.scope(inside) })
    assert.same({ strategy, "two" }, { strategy:scope(inside) })
    assert.is_false(distribute.has_strategy())
    assert.equal(1, strategy.num_replicas_in_sync)
  end)

  it("leaves the scope when the function fails, and passes the error through", function()
    assert.has_error(function() strategy.scope(function() error("wrong", 0) end) end, "wrong")
    assert.is_false(distribute.has_strategy())
    has(message_of(function() strategy.scope() end), "takes a function, got nil")
    has(message_of(function() strategy:scope(3) end), "takes a function, got the number 3")
  end)

  it("can be entered again in its own scope, but not in another's", function()
    strategy.scope(function()
      strategy.scope(function() assert.equal(strategy, distribute.get_strategy()) end)
      assert.equal(strategy, distribute.get_strategy())
    end)
    local other = distribute.OneDeviceStrategy("cpu:0")
    has(message_of(function() strategy.scope(function() other.scope(function() end) end) end),
      "Mixing different strategies: the scope of OneDeviceStrategy was opened inside of the scope of MirroredStrategy")
    assert.is_false(distribute.has_strategy())
  end)

  it("holds two models that train independently", function()
    local first, second
    strategy.scope(function()
      first = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
      second = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
      first:compile { optimizer = "sgd", loss = "mse" }
      second:compile { optimizer = "adam", loss = "mse" }
    end)
    local before = second.layers[1].kernel:totable()
    local history = first:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { epochs = 3, verbose = 0 }).history
    assert.is_true(history.loss[3] < history.loss[1])
    assert.same(before, second.layers[1].kernel:totable())
    second:fit(flow.ones { 8, 2 }, flow.zeros { 8, 1 }, { verbose = 0 })
    assert.not_same(before, second.layers[1].kernel:totable())
  end)

  it("runs a step and reduces its results", function()
    local result = strategy:run(function(a, b) return a + b end, { flow.tensor { 1, 2 }, 1 })
    assert.same({ 2, 3 }, strategy:reduce("SUM", result):totable())
    assert.equal(5, strategy:reduce("sum", result, 1):item())
    assert.equal(2.5, strategy:reduce(distribute.ReduceOp.MEAN, result, 1):item())
    assert.equal(result, strategy:experimental_local_results(result)[1])
    has(message_of(function() strategy:reduce("max", result) end), '"sum" or "mean", got the string "max"')
  end)

  it("traces a plain function once", function()
    local calls = 0
    local function step(x) calls = calls + 1 return x * 2 end
    for i = 1, 3 do assert.equal(2 * i, strategy:run(step, { flow.tensor(i) }):item()) end
    assert.equal(1, calls)
  end)

  it("is part of a flow.fn as it is", function()
    local f = flow.fn(function(x) return strategy:reduce("sum", strategy:run(function(y) return y * 3 end, { x })) end)
    assert.same({ 3, 6 }, f(flow.tensor { 1, 2 }):totable())
  end)

  it("names devices and options that are not there", function()
    has(message_of(function() distribute.MirroredStrategy { devices = { "cpu:0", "/device:CPU:0" } } end),
      'no duplicates in devices: "/device:CPU:0" is the same device as "cpu:0"')
    has(message_of(function() distribute.MirroredStrategy { "cpu:1" } end), 'device "cpu:1" does not exist')
    has(message_of(function() distribute.MirroredStrategy { devices = { "gpu:63" } } end), "does not exist")
    has(message_of(function() distribute.MirroredStrategy { devices = {} } end), "an empty one")
    has(message_of(function() distribute.MirroredStrategy { device = "cpu:0" } end), 'did you mean "devices"?')
    has(message_of(function() return distribute.MiroredStrategy end), 'did you mean "MirroredStrategy"?')
    has(message_of(function() return distribute.experimental.MultiWorker end), "flow.distribute.experimental has no")
  end)

  it("takes cross_device_ops, checked", function()
    for _, ops in ipairs { distribute.NcclAllReduce(), distribute.HierarchicalCopyAllReduce { num_packs = 2 },
                           distribute.ReductionToOneDevice { reduce_to_device = "cpu:0" } } do
      assert.equal(1, distribute.MirroredStrategy({ "cpu:0" }, ops).num_replicas_in_sync)
    end
    assert.equal(2, distribute.HierarchicalCopyAllReduce(2).num_packs)
    has(message_of(function() distribute.NcclAllReduce(-1) end), "num_packs is a whole number from 0, got the number -1")
    has(message_of(function() distribute.ReductionToOneDevice("cpu:9") end), 'device "cpu:9" does not exist')
    has(message_of(function() distribute.MirroredStrategy { cross_device_ops = "nccl" } end), 'got the string "nccl"')
  end)
end)

describe("the replica context", function()
  local strategy = distribute.MirroredStrategy()

  it("is that of the only replica outside of all scopes, none in a scope, and one in what run runs", function()
    assert.is_false(distribute.in_cross_replica_context())
    assert.equal(0, distribute.get_replica_context().replica_id_in_sync_group:item())
    assert.equal(1, distribute.get_replica_context().num_replicas_in_sync)
    strategy.scope(function()
      assert.is_true(distribute.in_cross_replica_context())
      assert.is_nil(distribute.get_replica_context())
    end)
    local seen = {}
    local result = strategy:run(function(x)
      local context = distribute.get_replica_context()
      seen = { distribute.in_cross_replica_context(), distribute.has_strategy(), context.strategy, distribute.get_strategy() }
      return context:all_reduce("mean", { x = x }), context:all_gather(x), context.replica_id_in_sync_group
    end, { flow.tensor { 4 } })
    assert.same({ false, true, strategy, strategy }, seen)
    assert.same({ 4 }, result.x:totable())
    assert.equal("DefaultStrategy", tostring(distribute.get_strategy()))
  end)

  it("refuses what belongs outside", function()
    local function again() strategy:run(function() end) end
    has(message_of(function() strategy:run(again) end), "strategy:run was called by a function that strategy:run runs")
    has(message_of(function() strategy:run(function() distribute.get_replica_context():all_reduce("max", 1) end) end), '"sum" or "mean"')
    has(message_of(function() strategy:run(3) end), "takes a function and a list of its arguments, got the number 3")
    has(message_of(function() strategy:run(again, flow.ones { 1 }) end), "the arguments are a list such as { x, y }")
  end)
end)

describe("a model belongs to a strategy", function()
  local strategy, other = distribute.MirroredStrategy(), distribute.OneDeviceStrategy("cpu:0")
  local x, y, quiet = flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0 }
  local compiled = { optimizer = "sgd", loss = "mse" }
  local function dense() return flow.Sequential { layers.Input { 2 }, layers.Dense(1) } end

  it("in whose scope it was made, wherever it is compiled and trained", function()
    local model = strategy.scope(dense)
    model:compile(compiled)
    model:fit(x, y, quiet)
    strategy.scope(function() model:fit(x, y, quiet) end)
    assert.equal(strategy, model.distribute_strategy)
    assert.equal("DefaultStrategy", tostring(dense().distribute_strategy))
  end)

  it("also if its variables come with the first batch", function()
    local model = strategy.scope(function() return flow.Sequential { layers.Dense(1) } end)
    model:compile(compiled)
    model:fit(x, y, quiet)
    model:compile(compiled)
    assert.equal(1, #model:fit(x, y, quiet).history.loss)
  end)

  it("and nothing else may train it", function()
    local outside = dense()
    has(message_of(function() strategy.scope(function() outside:compile(compiled) end) end),
      "was made outside of all scopes, it cannot compile in the scope of MirroredStrategy; make and compile the model in one scope")
    outside:compile(compiled)
    for _, call in ipairs { "fit", "evaluate", "train_on_batch", "test_on_batch" } do
      has(message_of(function() strategy.scope(function() outside[call](outside, x, y) end) end), "it cannot ")
    end
    local inside = strategy.scope(dense)
    inside:compile(compiled)
    has(message_of(function() other.scope(function() inside:fit(x, y, quiet) end) end),
      "was made in the scope of MirroredStrategy, it cannot fit in the scope of OneDeviceStrategy")
  end)

  it("with all that it trains", function()
    local base = dense()
    local model = strategy.scope(function() return flow.Sequential { layers.Input { 2 }, base } end)
    has(message_of(function() model:compile(compiled) end),
      ('the variables of Dense "%s" were not created in the scope of MirroredStrategy'):format(base.layers[1].name))
    base.trainable = false
    model:compile(compiled)
  end)
end)

describe("a cluster of one worker", function()
  it("is a strategy of this process", function()
    local strategy = distribute.MultiWorkerMirroredStrategy { cluster_resolver = distribute.ClusterResolver { cluster = {} },
      communication_options = distribute.CommunicationOptions { implementation = "ring" } }
    assert.equal(1, strategy.num_replicas_in_sync)
    local resolver = strategy.cluster_resolver
    assert.same({ nil, nil, true, 1 }, { resolver.task_type, resolver.task_id, resolver.is_chief, resolver.num_workers })
    assert.is_true(strategy.extended.should_checkpoint)
    assert.is_true(strategy.extended.should_save_summary)
    assert.equal("RING", strategy.communication_options.implementation)
    strategy:close()
    assert.equal(1, distribute.experimental.MultiWorkerMirroredStrategy("auto", distribute.ClusterResolver { cluster = {} })
      .num_replicas_in_sync)
  end)

  it("is what an evaluator is, and what a parameter server cannot be", function()
    local spec = { chief = { "a:1" }, worker = { "b:1" }, ps = { "c:1" } }
    local evaluator = distribute.ClusterResolver { cluster = spec, task = { type = "evaluator", index = 0 } }
    assert.equal(1, distribute.MultiWorkerMirroredStrategy(evaluator).num_replicas_in_sync)
    local server = distribute.ClusterResolver { cluster = spec, task = { type = "ps", index = 0 } }
    local _, left = pcall(distribute.MultiWorkerMirroredStrategy, server)
    has(tostring(left), "has no parameter servers: this process, ps:0, has nothing to do and ends; the workers do not wait for it")
    assert.equal(0, left.code)
    has(message_of(function() distribute.MultiWorkerMirroredStrategy { cluster_resolver = spec } end), "cluster_resolver is one such as")
  end)

  it("checks how workers are to communicate", function()
    local Options, names = distribute.CommunicationOptions, distribute.CommunicationImplementation
    assert.same({ 0, false, "AUTO" }, { Options().bytes_per_pack, Options().timeout_seconds, Options().implementation })
    local options = Options { bytes_per_pack = 1000, timeout_seconds = 30, implementation = names.NCCL }
    assert.same({ 1000, 30, "NCCL" }, { options.bytes_per_pack, options.timeout_seconds, options.implementation })
    assert.equal(names, distribute.CollectiveCommunication)
    has(message_of(function() Options { bytes_per_pack = -1 } end), "bytes_per_pack is a whole number from 0, got the number -1")
    has(message_of(function() Options { timeout_seconds = 0 } end), "timeout_seconds is a number above 0, or nil, got the number 0")
    options = Options { heartbeat = 0.5, dead_after = 4, start_within = 60 }
    assert.same({ 0.5, 4, 60 }, { options.heartbeat, options.dead_after, options.start_within })
    assert.same({ false, false, false }, { Options().heartbeat, Options().dead_after, Options().start_within })
    has(message_of(function() Options { dead_after = "long" } end), 'dead_after is a number above 0, or nil, got the string "long"')
    assert.same({ "none", "bfloat16" }, { Options().compression, Options { compression = "bfloat16" }.compression })
    has(message_of(function() Options { compression = "int8" } end), 'compression is none, bfloat16 or float16, got the string "int8"')
    assert.same({ "auto", false, true }, { Options().factors, Options { factors = false }.factors, Options { factors = true }.factors })
    has(message_of(function() Options { factors = "always" } end), 'factors is "auto", true or false, got the string "always"')
    has(message_of(function() Options { implementation = "GRPC" } end), 'AUTO, RING, NCCL or MPI, got the string "GRPC"')
    has(message_of(function() Options { timeout = 3 } end), 'unknown option "timeout"')
    has(message_of(function() return names.RINGS end), 'did you mean "RING"?')
    has(message_of(function() distribute.MultiWorkerMirroredStrategy { communication_options = "RING" } end),
      "communication_options is")
  end)
end)
