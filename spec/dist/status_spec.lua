-- status_spec.lua: what a training shows over HTTP while it runs: fit of one process, and the chief of a cluster.
local support = require "spec.support.init"
local runs = require "spec.support.replica_runs"
local json = require "flow.json"

local program = support.command

-- In each script: get(path) asks this process's own pages.
local BEGIN = [[
  local flow = require "flow"
  local layers, Dataset = flow.layers, flow.data.Dataset
  local port
  local sink = flow.log.sink
  flow.log.sink = function(_, text) port = port or text:match("status: http://127%.0%.0%.1:(%d+)/") end
  local function command(path)
    local ask = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%s; printf \"GET %s HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3'"
    return ask:format(port, path)
  end
  local function get(path)
    local pipe = io.popen(command(path))
    local text = pipe:read("*a")
    pipe:close()
    return (text:gsub("^.-\r\n\r\n", ""))
  end
  local function show(name, path) print("= " .. name .. " " .. get(path):gsub("\n", "|")) end
]]

local function run(script, environment, before)
  local output, code = support.run(("timeout -k 5 60 env FLOW_THREADS=1 FLOW_STATUS_PORT=127.0.0.1:0 %s %s %s %s"):format(environment or "",
    program, before or "", support.file("task.lua", BEGIN .. script)))
  assert.equal(0, code, output)
  local said = {}
  for name, text in output:gmatch("= (%w+) ([^\n]*)") do said[name] = text:gsub("|", "\n") end
  return said, output
end

local MODEL = [[
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { optimizer = "sgd", loss = "mse" }
]]

describe("the status of a training", function()
  it("shows where fit is, its losses and curves", function()
    local said, output = run(MODEL .. [[
      model:fit(flow.ones { 64, 2 }, flow.ones { 64, 1 }, { batch_size = 8, epochs = 3, verbose = 0, validation_split = 0.5, callbacks = {
        flow.callbacks.LambdaCallback { on_epoch_begin = function(epoch) if epoch == 2 then show("third", "/status") end end } } })
      show("done", "/status")
      show("metrics", "/metrics")
      show("page", "/")]])
    local third, done = json.decode(said.third).training, json.decode(said.done).training
    assert.same({ "training", 2, 3, 4, 8 }, { third.state, third.epoch, third.epochs, third.steps_per_epoch, third.step }, output)
    assert.same({ 2, 2 }, { #third.history.loss, #third.history.val_loss })
    assert.same({ "done", 3, 12 }, { done.state, done.epoch, done.step })
    assert.equal(done.logs.loss, done.history.loss[3])
    assert.is_true(done.history.loss[3] < done.history.loss[1] and done.samples_per_second > 0)
    assert.is_nil(json.decode(said.done).cluster)
    assert.truthy(said.metrics:find("# TYPE flow_step gauge\nflow_step 12\n", 1, true), said.metrics)
    assert.truthy(said.metrics:find('flow_log{name="loss"} ' .. ("%.17g"):format(done.logs.loss) .. "\n", 1, true), said.metrics)
    assert.truthy(said.page:find("</html>", 1, true))
  end)

  it("goes on where a child was forked and has ended", function()
    local said, output = run(MODEL .. [[
      local ffi = require "ffi"
      ffi.cdef "int fork(void); int waitpid(int, int *, int);"
      model:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { verbose = 0 })
      local child = ffi.C.fork()
      if child == 0 then os.exit(0, true) end
      ffi.C.waitpid(child, nil, 0)
      show("after", "/status")]])
    assert.truthy(said.after and said.after:find '"done"', output)
  end)

  it("is shown only where it was asked for, and a port that is taken does no harm", function()
    local script = support.file("task.lua", 'local flow = require "flow"\nlocal layers = flow.layers\n' .. MODEL
      .. 'model:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { verbose = 0 })\nprint "trained"')
    local output = support.run(("env FLOW_STATUS_PORT=203.0.113.1:80 %s %s"):format(program, script))
    local warning = "FLOW_STATUS_PORT=203.0.113.1:80: this training has no status page: this process cannot listen on"
    assert.truthy(output:find(warning, 1, true) and output:find("trained", 1, true), output)
    assert.equal("trained\n", (support.run(("env -u FLOW_STATUS_PORT %s %s"):format(program, script))))
  end)

  it("shows the tasks of a cluster, and whom it waits for", function()
    local said, output = run([[
      local strategy = flow.distribute.MultiWorkerMirroredStrategy()
      local index = strategy.cluster_resolver.task_id
      local function add(x) return flow.distribute.get_replica_context():all_reduce("SUM", x) end
      for step = 1, 20 do
        if step == 20 and index == 0 then      -- asked by another process, while this one waits
          os.execute(("(sleep 2.7; %s) | tail -n 1 | sed 's/^/= waits /' &"):format(command "/status"))
        end
        if step == 18 and index == 0 then show("metrics", "/metrics") end
        if step == 20 and index == 1 then os.execute "sleep 4" end
        strategy:run(add, { flow.tensor { 3 } })
      end
      assert((index == 0) == (port ~= nil))]], nil, "launch --workers 2 --status-port 127.0.0.1:0")
    local cluster = json.decode(said.waits).cluster
    assert.same({ "worker:0", 0, { "worker:1" } }, { cluster.task, cluster.restarts, cluster.waits_for }, output)
    assert.is_true(cluster.waiting_seconds > 2)
    assert.same({ "worker:0", "running", "worker:1", "running" }, { cluster.tasks[1].name, cluster.tasks[1].state, cluster.tasks[2].name,
                                                                   cluster.tasks[2].state })
    assert.equal("strategy:run", cluster.tasks[1].doing)
    assert.is_true(cluster.tasks[1].step == 20 and cluster.tasks[2].calls < cluster.tasks[1].calls, output)
    assert.truthy(said.metrics:find('flow_task_up{task="worker:1"} 1\n', 1, true), said.metrics)
    assert.truthy(said.metrics:find('flow_task_step{task="worker:0"} 17\n', 1, true), said.metrics)
  end)

  it("lets strangers do what they like: the training has the same bits", function()
    local strangers = support.program:match("^(.*/)") .. "strangers"
    local undisturbed = runs.train(runs.workers(2, "RING", "", ""))
    local run_beside = runs.train(runs.workers(2, "RING", "", ("FLOW_STATUS_PORT=127.0.0.1:0 %q 5 flowlua"):format(strangers)))
    assert.same(undisturbed.weights, run_beside.weights, run_beside.text)
    local connections, ports = run_beside.text:match("strangers: (%d+) connections to (%d+) ports")
    assert.truthy(tonumber(connections) > 20 and tonumber(ports) >= 3, run_beside.text)
  end)
end)
