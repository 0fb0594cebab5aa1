-- parameter_server_spec.lua: ParameterServerStrategy: asynchronous training with parameter servers, in processes of this machine. The
-- script that they run is parameter_server.lua.
local support = require "spec.support.init"
local ports = require "spec.support.ports"

local SCRIPT = support.root .. "spec/dist/parameter_server.lua"
local BEGIN = ("cd '%s'; FLOW_THREADS=1 FLOWLUA_PATH='%slua' timeout -k 5 100 %s "):format(support.root, support.root, support.program)

local function alone(arguments)
  local text, code = support.run(BEGIN .. SCRIPT .. " --alone " .. arguments)
  assert.equal(0, code, text)
  return text
end

local function launch(options, arguments, wanted)
  local text, code = support.run(BEGIN .. ("launch %s %s -- %s"):format(options, SCRIPT, arguments or ""))
  assert.equal(wanted or 0, code, text)
  return text
end

-- A script whose tasks have a coordinator before its code begins.
local function coordinated(name, code)
  return support.file(name, [[
      local flow = require "flow"
      local strategy = flow.distribute.ParameterServerStrategy()
      local coordinator = flow.distribute.ClusterCoordinator(strategy)
]] .. code)
end

-- What a task says after a word: numbers as text.
local function said(text, task, word)
  for line in text:gmatch "[^\n]+" do
    local found = line:match("^" .. (task and "%[" .. task .. "%] " or "") .. word .. " (.*)$")
    if found then return found end
  end
  error(("%s does not say %q in:\n%s"):format(task or "it", word, text))
end

describe("parameter servers", function()
  for _, case in ipairs {
    { "--optimizer sgd", 1 }, { "--optimizer adam", 2 }, { "--optimizer adam --parts 3", 2 }, { "--optimizer lion", 1 },
    { "--optimizer adam --dataset", 1 }, { "--optimizer sgd --dataset --steps 20 --creator", 1 }, { "--optimizer adam --staleness 0", 2 },
    { "--optimizer adam --constraint --parts 3", 2 },
  } do
    it(("one worker ends with the bits of a lone run: %s, %d servers"):format(unpack(case)), function()
      local wanted = alone((case[1]:gsub("%-%-parts %d", ""):gsub("%-%-staleness %d", "")))
      local text = launch(("--workers 1 --parameter-servers %d"):format(case[2]), case[1])
      for _, word in ipairs { "sum", "accuracy", "iterations" } do
        assert.equal(said(wanted, nil, word), said(text, "worker:0", word), text)
      end
      if case[1]:find "constraint" then assert.equal("0.00000", said(text, "worker:0", "norms"), text) end
      local losses = said(text, "worker:0", "loss"):gmatch "%S+"
      for loss in said(wanted, nil, "loss"):gmatch "%S+" do assert.near(tonumber(loss), tonumber(losses()), 1e-9) end
    end)
  end

  it("moving statistics are added up on the servers: one worker ends as a lone run, to rounding", function()
    local arguments = "--optimizer sgd --norm"
    local wanted, text = alone(arguments), launch("--workers 1 --parameter-servers 1", arguments)
    assert.near(tonumber(said(wanted, nil, "sum")), tonumber(said(text, "worker:0", "sum")), 1e-2)
    assert.equal(said(wanted, nil, "accuracy"), said(text, "worker:0", "accuracy"))
  end)

  it("two workers train the digits, and all have the chief's history and the same weights", function()
    local text = launch("--workers 2 --parameter-servers 2",
      "--optimizer adam --epochs 8 --tasks 2 --folder " .. support.folder())
    assert.is_true(tonumber(said(text, "worker:0", "accuracy")) > 0.95, text)
    for _, word in ipairs { "sum", "loss", "iterations" } do
      assert.equal(said(text, "worker:0", word), said(text, "worker:1", word), text)
    end
    assert.equal("376", said(text, "worker:0", "iterations"))      -- 8 epochs of 47 batches: each batch once
  end)

  it("the chief's bar counts the batches of all workers", function()
    local path = support.file("counted.lua", [[
      local flow = require "flow"
      local strategy, model = flow.distribute.ParameterServerStrategy(), nil
      strategy.scope(function()
        model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
        model:compile { optimizer = "sgd", loss = "mse" }
      end)
      model:fit(flow.ones { 400, 2 }, flow.ones { 400, 1 }, { batch_size = 4, verbose = 2 })]])
    local text, code = support.run(BEGIN .. "launch --workers 2 --parameter-servers 1 " .. path)
    assert.equal(0, code, text)
    assert.truthy(text:find("100/100 - ", 1, true), text)
  end)

  for victim = 1, 2 do
    it(("a worker that is killed in the middle is started again, and each batch counts: worker:%d"):format(victim), function()
      local text = launch("--workers 3 --parameter-servers 2 --max-restarts 1",
        ("--optimizer adam --epochs 6 --kill worker:%d --pause %s/killed --tasks 3 --folder %s"):format(victim, support.folder(),
          support.folder()))
      assert.truthy(text:find(("worker:%d was killed by SIGKILL; it starts again"):format(victim), 1, true), text)
      assert.is_true(tonumber(said(text, "worker:0", "accuracy")) > 0.9, text)
      assert.equal("282", said(text, "worker:0", "iterations"))
      for i = 1, 2 do assert.equal(said(text, "worker:0", "sum"), said(text, "worker:" .. i, "sum"), text) end
    end)
  end

  it("memory that both share carries the values, with the same bits", function()
    local through = launch("--workers 1 --parameter-servers 2", "--optimizer adam")
    local text, code = support.run("FLOW_SHARED_MEMORY=0 " .. BEGIN:gsub("^cd", ";cd") .. ("launch --workers 1 --parameter-servers 2 %s "
      .. "-- --optimizer adam"):format(SCRIPT))
    assert.equal(0, code, text)
    assert.equal(said(text, "worker:0", "sum"), said(through, "worker:0", "sum"))
  end)

  it("all roles end when the chief has: evaluator, servers and workers, and nothing is left", function()
    local folder = support.folder()
    local path = support.file("roles.lua", [[
      local flow = require "flow"
      local strategy = flow.distribute.ParameterServerStrategy()
      local x, y = flow.datasets.mnist { path = "lua/examples/digits" }
      local model
      strategy.scope(function()
        model = flow.Sequential { flow.layers.Input { 28, 28 }, flow.layers.Flatten(), flow.layers.Rescaling(1 / 255),
                                  flow.layers.Dense(10) }
        model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
      end)
      local folder, role = arg[1], strategy.cluster_resolver.task_type
      print("process " .. io.open("/proc/self/stat"):read "*n")
      if role == "evaluator" then
        local evaluator = flow.train.SidecarEvaluator { model = model, data = { x, y }, checkpoint_dir = folder, max_evaluations = 2,
                                                        callbacks = { flow.callbacks.TensorBoard(folder .. "/logs") } }
        print("evaluated " .. evaluator:start())
        io.open(folder .. "/evaluated", "w"):close()
        return
      end
      model:fit(x, y, { epochs = 2, verbose = 0, callbacks = {
        flow.callbacks.ModelCheckpoint(folder .. "/m-{epoch:02d}.weights.h5", { save_weights_only = true }) } })
      while role == "chief" and not io.open(folder .. "/evaluated") do os.execute "sleep 0.1" end
      print "done"]])
    local text, code = support.run(BEGIN .. ("launch --chief --workers 3 --parameter-servers 2 --evaluator %s -- %s"):format(path, folder))
    assert.equal(0, code, text)
    assert.equal(4, select(2, text:gsub("%] done", "")), text)
    assert.equal("2", said(text, "evaluator:0", "evaluated"))
    assert.equal(2, select(2, text:gsub("the chief has ended, and so does ps:", "")), text)
    for process in text:gmatch "process (%d+)" do assert.is_nil(io.open("/proc/" .. process .. "/stat"), text) end
    local _, found = support.run(("ls %s/logs/validation/ | grep -q tfevents"):format(folder))
    assert.equal(0, found)
  end)

  it("after a join all have what it has left, also when the chief goes on at once", function()
    local path = coordinated("phases.lua", [[
      local count, large
      strategy.scope(function() count, large = flow.Variable(0), flow.Variable(flow.zeros { 1000000 }) end)
      local function add() count:assign_add(1) end
      local seen = {}
      local task = strategy.cluster_resolver.task_id
      local function here(i) return arg[0] .. "." .. i end
      if task > 0 then io.open(here(task), "w"):close() end
      while task == 0 and not (io.open(here(1)) and io.open(here(2))) do os.execute("sleep 0.05") end
      if task == 0 then os.execute("sleep 0.5") end      -- the others have come to their join
      for phase = 1, 20 do
        if task == 2 and phase % 6 == 0 then os.execute("sleep 0.3") end      -- the others have done the phase then
        for _ = 1, 3 do coordinator:schedule(add) end
        coordinator:join()
        seen[phase] = count:item()
        count:assign(100 * phase)
      end
      print("seen " .. table.concat(seen, " "))
    ]])
    local text, code = support.run(BEGIN .. "launch --workers 3 --parameter-servers 1 " .. path)
    assert.equal(0, code, text)
    local expected = {}
    for phase = 1, 20 do expected[phase] = 100 * (phase - 1) + 3 end
    for i = 0, 2 do assert.equal(table.concat(expected, " "), said(text, "worker:" .. i, "seen"), text) end
  end)

  it("a coordinator's function that takes elements by itself is not a flow.fn, which the error says", function()
    local path = coordinated("next.lua", [[
      local count
      strategy.scope(function() count = flow.Variable(0) end)
      local data = coordinator:create_per_worker_dataset(function() return flow.data.Dataset.range(8):repeat_() end)
      local function step(iterator) count:assign_add(iterator:next():to("float32") * 0 + 1) end
      local iterator = data:iter()
      for _ = 1, 4 do coordinator:schedule(step, { iterator }) end
      coordinator:join()
      print("count " .. count:item())
      coordinator:schedule(flow.fn(step), { iterator })
      print("iterator " .. select(2, pcall(coordinator.join, coordinator)))
      coordinator:schedule(flow.fn(function() error('there is no "next" page') end), { flow.ones { 1 } })
      print("none " .. select(2, pcall(coordinator.join, coordinator)))
    ]])
    local text, code = support.run(BEGIN .. "launch --workers 1 --parameter-servers 1 " .. path)
    assert.equal(0, code, text)
    assert.equal("4", said(text, "worker:0", "count"))
    assert.truthy(said(text, "worker:0", "iterator"):find("a function without flow.fn gets the iterator", 1, true), text)
    assert.falsy(said(text, "worker:0", "none"):find("a function without flow.fn gets the iterator", 1, true), text)
  end)

  it("a coordinator's flow.fn takes the iterator itself where it has no parameters for its values, as TensorFlow's steps do", function()
    local path = coordinated("taken.lua", [[
      local weight, optimizer
      strategy.scope(function() weight, optimizer = flow.Variable({ 4, 2 }, { name = "weight" }), flow.optimizers.SGD(0.25) end)
      local traces = 0
      local function body(x, y)
        traces = traces + 1
        local tape = flow.GradientTape()
        local loss = tape:record(function() return (weight:sum() * x.a + y * 0):sum() end)
        optimizer:apply_gradients(tape:gradient(loss, { weight }), { weight })
        return loss
      end
      local step = flow.fn(function(iterator)
        local function of_replica(x, y) return body(x, y) end
        return strategy:reduce("sum", strategy:run(of_replica, { args = { iterator:next() } }))
      end)
      local numbers = flow.data.Dataset.from_tensor_slices { { a = flow.ones { 4 } }, flow.ones { 4 } }:batch(2):repeat_()
      local data = coordinator:create_per_worker_dataset(flow.fn(function() return numbers end))
      local iterator, last = data:iter(), nil
      for _ = 1, 4 do last = coordinator:schedule(step, { args = { iterator } }) end
      coordinator:join()
      print("weight " .. table.concat(weight:totable(), " ") .. " last " .. last:fetch():item() .. " traces " .. traces)]])
    local text, code = support.run(BEGIN .. "launch --workers 1 --parameter-servers 1 " .. path)
    assert.equal(0, code, text)
    assert.equal("2 0 last 6 traces 1", said(text, "worker:0", "weight"), text)
  end)

  it("a coordinator's functions run on all workers, and their results and failures come to the chief", function()
    local path = coordinated("coordinator.lua", [[
      dofile "spec/dist/chief_waits.lua" (arg[1], tonumber(arg[2]))      -- one that comes later has the values of then, not of each join
      assert(coordinator == flow.distribute.coordinator.ClusterCoordinator(strategy))
      local weight
      strategy.scope(function() weight = flow.Variable({ 4, 2 }, { name = "weight" }) end)
      local optimizer = flow.optimizers.SGD(0.25)
      local data = coordinator:create_per_worker_dataset(function()
        return flow.data.Dataset.range(1):map(function(i) return i * 0 + 1 end):repeat_()
      end)
      local iterator = data:iter()
      local step = flow.fn(function(one)
        local tape = flow.GradientTape()
        local loss = tape:record(function() return (weight * one:to("float32")):sum() end)
        optimizer:apply_gradients(tape:gradient(loss, { weight }), { weight })
        return loss
      end)
      local count
      strategy.scope(function() count = flow.Variable(0, { dtype = "int64", trainable = false, name = "count" }) end)
      local function counted(n) count:assign_add(n) return { n, flow.tensor { n, n } }, "told" end
      local losses = {}
      for i = 1, 8 do losses[i] = coordinator:schedule(step, { iterator }) end
      coordinator:join()
      print("weight " .. table.concat(weight:totable(), " ") .. " after " .. optimizer.iterations)
      local total = 0
      for i = 1, 8 do total = math.max(total, losses[i]:fetch():item()) end
      print("first " .. total)
      local values = {}
      for i = 1, 6 do values[i] = coordinator:schedule(counted, { i }) end
      local got, told = values[6]:fetch()
      print("result " .. got[1] .. " " .. got[2][2]:item() .. " " .. told)
      coordinator:join()
      print("count " .. count:item() .. " " .. tostring(coordinator:done()))
      coordinator:schedule(function() error("no luck", 0) end)
      local ok, problem = pcall(coordinator.join, coordinator)
      if strategy.cluster_resolver.is_chief then print("failed " .. tostring(ok) .. " " .. problem:match("has failed: (.*)")) end
      coordinator:schedule(counted, { 10 })
      coordinator:join()
      print("again " .. count:item())]])
    for workers = 1, 3 do
      local text, code = support.run(BEGIN .. ("launch --workers %d --parameter-servers 2 %s -- %s %d"):format(workers, path,
        support.folder(), workers))
      assert.equal(0, code, text)
      for i = 0, workers - 1 do
        local task = "worker:" .. i
        assert.equal("2 0 after 8", said(text, task, "weight"), text)      -- also where the others were faster and this one computed none
        assert.equal("6", said(text, task, "first"))
        assert.equal("6 6 told", said(text, task, "result"))
        assert.equal("21 true", said(text, task, "count"))
        assert.equal("31", said(text, task, "again"))
      end
      assert.equal("false no luck", said(text, "worker:0", "failed"))
    end
  end)
end)

-- TensorFlow's rules (sharded_variable.py) applied to shapes by hand.
describe("partitioners", function()
  local flow = require "flow"
  local distribute = flow.distribute
  for _, case in ipairs {
    { "FixedShards 3", distribute.FixedShardsPartitioner(3), { 10, 4 }, 3 },
    { "FixedShards 3 of 2 rows", distribute.FixedShardsPartitioner(3), { 2, 4 }, 2 },
    { "MinSize of 1 MiB, up to 8", distribute.MinSizePartitioner(256 * 1024, 8), { 1024, 256 }, 4 },
    { "MinSize of a bit more", distribute.MinSizePartitioner(256 * 1024, 8), { 1025, 256 }, 5 },
    { "MinSize, limited", distribute.MinSizePartitioner(256 * 1024, 3), { 1024, 256 }, 3 },
    { "MinSize by default", distribute.MinSizePartitioner(), { 4096, 256 }, 1 },
    { "MinSize of a small one", distribute.MinSizePartitioner(256 * 1024, 8), { 10 }, 1 },
    { "MaxSize", distribute.MaxSizePartitioner(4096), { 100, 16 }, 2 },
    { "MaxSize of rows that are too large", distribute.MaxSizePartitioner(16), { 5, 16 }, 5 },
    { "MaxSize of rows without elements", distribute.MaxSizePartitioner(16), { 5, 0 }, 1 },
    { "MaxSize, limited", distribute.MaxSizePartitioner(16, 2), { 5, 16 }, 2 },
  } do
    it(case[1], function()
      local list = case[2](case[3], "float32")
      assert.equal(case[4], list[1])
      for axis = 2, #case[3] do assert.equal(1, list[axis]) end
    end)
  end
end)

describe("what cannot be", function()
  local function refused(environment, code, wanted)
    local path = support.file("refused.lua", code)
    local text, status = support.run(environment .. " " .. BEGIN:gsub("^cd", ";cd") .. path)
    assert.is_true(status ~= 0, text)
    assert.truthy(text:find(wanted, 1, true), text)
  end

  it("results are kept for a worker that fetches them long after the chief has gone on", function()
    local path = coordinated("late.lua", [[
      local is_chief = strategy.cluster_resolver.is_chief
      dofile "spec/dist/chief_waits.lua" (arg[1], 2)
      local value = coordinator:schedule(function() return flow.tensor { 5 } end)
      coordinator:join()
      if not is_chief then os.execute "sleep 1" end
      print("first " .. (is_chief and 5 or value:fetch():item()))
      for i = 1, 4 do
        coordinator:schedule(function() return flow.tensor { i } end)
        coordinator:join()
      end
      print "over"]])
    local text, code = support.run(BEGIN .. ("launch --workers 2 --parameter-servers 1 %s -- %s"):format(path, support.folder()))
    assert.equal(0, code, text)
    for i = 0, 1 do
      assert.equal("5", said(text, "worker:" .. i, "first"), text)
    end
  end)

  it("results are kept for a worker that begins after the chief has ended its work", function()
    local path = support.file("later.lua", [[
      local flow = require "flow"
      local strategy = flow.distribute.ParameterServerStrategy()
      local is_chief = strategy.cluster_resolver.is_chief
      dofile "spec/dist/chief_waits.lua" (arg[1], 2)
      if not is_chief then os.execute "sleep 1.5" end
      local coordinator = flow.distribute.ClusterCoordinator(strategy)
      local total = 0
      for i = 1, 6 do
        local value = coordinator:schedule(function() return flow.tensor { i } end)
        coordinator:join()
        total = total + value:fetch():item()
      end
      print("total " .. total)]])
    local text, code = support.run(BEGIN .. ("launch --workers 2 --parameter-servers 1 %s -- %s"):format(path, support.folder()))
    assert.equal(0, code, text)
    for i = 0, 1 do assert.equal("21", said(text, "worker:" .. i, "total"), text) end
  end)

  it("a worker that is connected and never comes to what is done together is waited for no longer than reassign_after", function()
    local path = support.file("absent.lua", [[
      local flow = require "flow"
      local strategy = flow.distribute.ParameterServerStrategy { reassign_after = 1 }
      local is_chief = strategy.cluster_resolver.is_chief
      dofile "spec/dist/chief_waits.lua" (arg[1], 2)
      local done = arg[1] .. "/done"
      if not is_chief then os.execute(("i=0; while [ ! -e '%s' ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done"):format(done)) end
      local coordinator = flow.distribute.ClusterCoordinator(strategy)
      local total = 0
      for i = 1, 3 do
        local value = coordinator:schedule(function() return flow.tensor { i } end)
        coordinator:join()
        total = total + value:fetch():item()
      end
      if is_chief then io.open(done, "w"):close() end
      print("total " .. total)]])
    local text, code = support.run(BEGIN .. ("launch --workers 2 --parameter-servers 1 %s -- %s"):format(path, support.folder()))
    assert.equal(0, code, text)
    for i = 0, 1 do assert.equal("6", said(text, "worker:" .. i, "total"), text) end
    local wanted = "ps:0: worker:1 has not come to the end of what was done together for 1 s; the others go on"
    assert.truthy(text:find(wanted, 1, true), text)
  end)

  it("a cluster without parameter servers, or without workers", function()
    refused("unset TF_CONFIG", "flow = require 'flow' flow.distribute.ParameterServerStrategy()", "the cluster has no parameter server")
    refused([[export TF_CONFIG='{"cluster":{"ps":["127.0.0.1:2222"]},"task":{"type":"ps","index":0}}']],
      "flow = require 'flow' flow.distribute.ParameterServerStrategy()", "no task that trains")
    refused([[export TF_CONFIG='{"cluster":{"ps":["10.0.0.1:2222"],"worker":["10.0.0.2:2222"]},"task":{"type":"worker","index":0}}';
      unset FLOW_SECRET FLOW_INSECURE]], "flow = require 'flow' flow.distribute.ParameterServerStrategy()", "there is no secret")
  end)

  it("another secret, optimizers written in Lua, callbacks of batches, a partitioner that cuts another axis", function()
    local function launched(code, wanted)
      local text = support.run(BEGIN .. "launch --workers 1 --parameter-servers 1 --kill-after 1 " .. support.file("bad.lua", code))
      assert.truthy(text:find(wanted, 1, true), text)
    end
    local model = [[
      local flow = require "flow"
      local strategy = flow.distribute.ParameterServerStrategy { variable_partitioner = PARTITIONER }
      local model
      strategy.scope(function()
        model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
        model:compile { optimizer = OPTIMIZER, loss = "mse" }
      end)
      model:fit(flow.zeros { 4, 2 }, flow.zeros { 4, 1 }, { verbose = 0, callbacks = CALLBACKS })]]
    local own = [[local flow = require "flow"
      local Own = flow.optimizers.Optimizer:extend("Own")
      function Own:update_step(gradient, variable, rate) variable:assign_sub(gradient * rate) end
      OPTIMIZER = Own { learning_rate = 0.1 }
      ]]
    launched(own .. model, "is written in Lua, but its updates run on the parameter servers")
    launched("OPTIMIZER = require('flow').optimizers.SGD { use_ema = true }\n" .. model, "use_ema is not supported by parameter servers")
    launched("OPTIMIZER = 'sgd' CALLBACKS = { require('flow').callbacks.LambdaCallback { on_train_batch_end = print } }\n" .. model,
      "callbacks with hooks of batches are not supported")
    launched("OPTIMIZER = 'sgd' PARTITIONER = function(shape) return { 1, 2 } end\n" .. model, "cut along their first axis only")
  end)

  it("tasks whose secrets, versions or scripts differ say so", function()
    local script = support.file("differs.lua", [[
      local flow = require "flow"
      local strategy = flow.distribute.ParameterServerStrategy()
      local links = strategy._store.links
      local hello = { is = "hello", protocol = 1, version = "0.0.1", name = "worker:9", chief = false, cluster = "", process = 1 }
      print(select(2, pcall(links.ask, links, 1, hello)))
      local long = ("v"):rep(120)
      strategy.scope(function()
        flow.Variable(flow.zeros { arg[1] == "reshaped" and 3 or 2 }, { name = arg[1] == "renamed" and long .. "w" or long })
      end)
      strategy._store:define()
      if strategy.cluster_resolver.is_chief then os.execute "sleep 9" end]])
    -- Starts a server and the chief, then a worker; once it has ended, the others are ended, too.
    local function start(secret, argument)
      local path = support.file("cluster.sh", ([[
        port=%d
        cluster="{ \"ps\": [\"127.0.0.1:$port\"], \"chief\": [\"127.0.0.1:$((port + 1))\"], \"worker\": [\"127.0.0.1:$((port + 2))\"] }"
        cd %s; export FLOWLUA_PATH=%slua FLOW_START_WITHIN=10
        task() {
          export TF_CONFIG="{ \"cluster\": $cluster, \"task\": { \"type\": \"$1\", \"index\": 0 } }" FLOW_SECRET=$2
          exec timeout 20 %s %s $3
        }
        (task ps 0123456789abcdef) & (task chief 0123456789abcdef) &
        (task worker %s %s); echo "code $?"; kill $(jobs -p); wait]]):format(ports.take(3), support.root, support.root,
        support.program, script, secret, argument))
      return support.start("bash " .. path)
    end
    local ends = { start("fedcba9876543210", ""), start("''", ""), start("0123456789abcdef", "reshaped"),
                   start("0123456789abcdef", "renamed") }
    local text = ends[1]()
    assert.truthy(text:find "flowlua: [^\n]*: ps:0 127.0.0.1:%d+ did not answer: [^\n]*is FLOW_SECRET the same in all tasks%?\n", text)
    assert.truthy(text:find("code 1", 1, true), text)
    text = ends[2]()
    assert.truthy(text:find "flowlua: [^\n]*: ps:0 127.0.0.1:%d+: it has a secret, this process has none: set the same", text)
    assert.truthy(text:find("code 1", 1, true), text)
    text = ends[3]()
    local long = ("v"):rep(120)
    local reshaped = ('worker:0 has the variable "%s" float32 {3} where the chief has "%s" float32 {2}'):format(long, long)
    assert.truthy(text:find(reshaped, 1, true), text)
    assert.truthy(text:find("worker:9 is flowlua 0.0.1 (protocol 1), ps:0 is flowlua", 1, true), text)
    assert.truthy(text:find("code 1", 1, true), text)
    text = ends[4]()
    assert.truthy(text:find(('"%sw" float32 {2} where the chief has "%s" float32 {2}'):format(long, long), 1, true), text)
  end)
end)
