-- flow.distribute's cluster resolvers: what scripts see of a cluster. The rules themselves are in spec/c/test_cluster.c.
local support = require "spec.support.init"
local flow = require "flow"

local function message_of(f) return support.message_of(f) end

local SPEC = { chief = { "a:2222" }, worker = { "b:2222", "c:2222" } }

-- What `code` prints in a process whose environment has these variables.
local function run_with(variables, code)
  local prefix = ""
  for name, value in pairs(variables) do prefix = prefix .. ("%s='%s' "):format(name, value) end
  return support.run(("env -u TF_CONFIG %s %s -e '%s' 2>&1"):format(prefix, os.getenv("FLOW_LUA") or "luajit", code))
end

local SHOW = 'local r = require("flow").distribute.%s() '
  .. 'io.write(tostring(r.task_type), " ", tostring(r.task_id), " ", tostring(r.is_chief), " ", r.num_workers)'
local TWO = '{"cluster": {"worker": ["localhost:2222", "localhost:2223"]}, "task": {"type": "worker", "index": 1}}'

describe("a cluster resolver", function()
  it("has the task, the chief and the number of workers", function()
    local resolver = flow.distribute.ClusterResolver { cluster = SPEC, task = { type = "worker", index = 1 } }
    assert.same({ "worker", 1, false, 3 }, { resolver.task_type, resolver.task_id, resolver.is_chief, resolver.num_workers })
    assert.same(SPEC, resolver:cluster_spec())
    resolver = flow.distribute.SimpleClusterResolver(SPEC, { task_type = "chief", task_id = 0 })
    assert.same({ "chief", 0, true, 3 }, { resolver.task_type, resolver.task_id, resolver.is_chief, resolver.num_workers })
  end)

  it("has a spec with the methods of TensorFlow's", function()
    local spec = flow.distribute.ClusterResolver({ cluster = SPEC, task = { type = "worker", index = 1 } }):cluster_spec()
    assert.same(SPEC, spec:as_dict())
    assert.is_nil(getmetatable(spec:as_dict()))
    assert.is_nil(spec.ps)
    local made = flow.train.ClusterSpec { worker = { "a:1", "b:2" }, ps = { "c:3" } }
    assert.same({ 2, "b:2", { "c:3" } }, { made:num_tasks "worker", made:task_address("worker", 1), made:job_tasks "ps" })
    assert.equal(2, flow.distribute.SimpleClusterResolver(made, { task_type = "worker", task_id = 0 }).num_workers)
    assert.same(made, flow.train.ClusterSpec(made))
    assert.error_matches(function() made:num_tasks "chief" end, "no job \"chief\"")
    assert.error_matches(function() made:task_address("ps", 1) end, "the job \"ps\" has 1 tasks")
    assert.error_matches(function() flow.train.ClusterSpec { worker = { 1 } } end, "an address is a text")
  end)

  it("of nothing is a single worker", function()
    local resolver = flow.distribute.ClusterResolver { cluster = {} }
    assert.is_nil(resolver.task_type)
    assert.is_nil(resolver.task_id)
    assert.is_true(resolver.is_chief)
    assert.equal(1, resolver.num_workers)
    assert.same({}, resolver:cluster_spec())
  end)

  it("reads TF_CONFIG, and what a launcher sets only where it is asked to", function()
    assert.equal("worker 1 false 2", run_with({ TF_CONFIG = TWO }, SHOW:format("TFConfigClusterResolver")))
    assert.equal("worker 1 false 2", run_with({ TF_CONFIG = TWO }, SHOW:format("ClusterResolver")))
    local launched = { OMPI_COMM_WORLD_RANK = "2", OMPI_COMM_WORLD_SIZE = "4" }
    assert.equal("worker 2 false 4", run_with(launched, SHOW:format("ClusterResolver")))
    assert.equal("nil nil true 1", run_with(launched, SHOW:format("TFConfigClusterResolver")))
  end)

  it("takes a task in place of TF_CONFIG's", function()
    local code = 'local r = require("flow").distribute.TFConfigClusterResolver { task_id = 0, rpc_layer = "grpc" } '
      .. "io.write(r.task_id, tostring(r.is_chief))"
    assert.equal("0true", run_with({ TF_CONFIG = TWO }, code))
  end)

  it("raises when the environment has nonsense for a parameter server's restarts or seconds", function()
    local server = '{"cluster": {"worker": ["localhost:1"], "ps": ["localhost:2"]}, "task": {"type": "ps", "index": 0}}'
    local code = 'local flow = require("flow") local d = flow.distribute io.write(select(2, pcall(d.ParameterServerStrategy)))'
    local found = run_with({ TF_CONFIG = server, FLOW_MAX_RESTARTS = "often" }, code)
    assert.truthy(found:find('FLOW_MAX_RESTARTS is a whole number from 0, got "often"', 1, true), found)
    found = run_with({ TF_CONFIG = server, FLOW_REASSIGN_AFTER = "-3" }, code)
    assert.truthy(found:find('FLOW_REASSIGN_AFTER is a number of seconds above 0, got the string "-3"', 1, true), found)
  end)

  it("raises a sentence at the caller's line", function()
    local message = message_of(function()
      flow.distribute.ClusterResolver { cluster = { worker = { "a:1", "b:1" } }, task = { type = "worker", index = 2 } }
    end)
    assert.truthy(message:find("^ClusterResolver: this process is worker:2, but the cluster lists 2 workers"))
    local found = run_with({ TF_CONFIG = '{"cluster": ' }, SHOW:format("TFConfigClusterResolver"))
    assert.truthy(found:find("TF_CONFIG is not JSON", 1, true))
    local distribute = flow.distribute
    assert.truthy(message_of(function() distribute.ClusterResolver { cluster = 1 } end):find("is a table, got the number 1", 1, true))
    assert.truthy(message_of(function() distribute.ClusterResolver { tasks = {} } end):find('did you mean "task"?', 1, true))
    assert.truthy(message_of(function() distribute.TFConfigClusterResolver { task_id = 0.5 } end):find("a whole number from 0", 1, true))
    assert.truthy(message_of(function() distribute.SimpleClusterResolver("a:1") end):find("the cluster is a table of jobs", 1, true))
  end)
end)
