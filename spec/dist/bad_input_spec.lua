-- bad_input_spec.lua: clusters that cannot be, by real processes: each ends in time with one sentence that names what does not fit, said
-- once by each process that ends with it, or once by the whole cluster where all go on.
local support = require "spec.support.init"
local ports = require "spec.support.ports"

local program = ("FLOWLUA_PATH=%slua FLOW_THREADS=1 FLOW_SECRET=0123456789abcdef0123456789abcdef"):format(support.root)
local NO_MPI = support.missing_engine("MPI", true)

local count = support.count

-- TF_CONFIG of worker `index`; addresses: ports, or texts.
local function config(addresses, index)
  local list = {}
  for i, address in ipairs(addresses) do list[i] = ('"%s"'):format(type(address) == "number" and "127.0.0.1:" .. address or address) end
  return ("TF_CONFIG='{\"cluster\":{\"worker\":[%s]},\"task\":{\"type\":\"worker\",\"index\":%d}}'"):format(table.concat(list, ","), index)
end

local function two_ports()
  return { ports.take(1), ports.take(1) }
end

-- A worker that adds up STEPS times; "ready" is written to a file of this name and its process, where it has one.
local SCRIPT = [[
  local flow = require "flow"
  local strategy = flow.distribute.MultiWorkerMirroredStrategy {
    %s communication_options = { %s start_within = tonumber(os.getenv "START_WITHIN" or 8), heartbeat = 0.2,
                                 dead_after = tonumber(os.getenv "DEAD_AFTER" or 10) },
  }
  strategy:reduce("SUM", flow.tensor { 1 })
  if arg[1] then
    local ffi = require "ffi"
    ffi.cdef "int getpid(void);"
    flow.io.write(arg[1], tostring(ffi.C.getpid()))
  end
  for _ = 1, tonumber(os.getenv "STEPS" or 0) do
    strategy:reduce("SUM", flow.tensor { 1 })
    os.execute "sleep 0.05"
  end
  print "done"]]

local function script(options, communication) return support.file("task.lua", SCRIPT:format(options or "", communication or "")) end

local function start(environment, path, ready)
  return support.start(("env %s %s timeout -k 5 60 %s %s %s"):format(program, environment, support.program, path, ready or ""))
end

local function wait_for(path)
  for _ = 1, 400 do
    local file = io.open(path)
    local text = file and file:read "*a"
    if file then file:close() end
    if text and text ~= "" then return text end
    os.execute "sleep 0.05"
  end
  error("nobody wrote " .. path)
end

-- One sentence, once, and nothing but the error around it.
local function check_sentence(text, code, pattern)
  assert.is_true(code ~= 0 and code ~= 124 and code ~= 137, text)
  assert.equal(1, count(text, pattern), text)
end

-- Each worker in its own folder, or all in one.
local FOLDERS = [[
  local flow, ffi = require "flow", require "ffi"
  ffi.cdef "int chdir(const char *);"
  local index = tonumber(os.getenv("TF_CONFIG"):match '"index":(%%d)')
  if %s then flow.io.makedirs("own" .. index) ffi.C.chdir("own" .. index) end
  local strategy, model = flow.distribute.MultiWorkerMirroredStrategy()
  strategy.scope(function()
    model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
  end)
  local x, y = flow.zeros { 8, 4 }, flow.zeros { 8, 1 }
  model:fit(x, y, { epochs = 2, verbose = 0, callbacks = {
    flow.callbacks.BackupAndRestore("backup", { delete_checkpoint = false }) } })
  local manager = flow.train.CheckpointManager(flow.train.Checkpoint { model = model }, "checkpoints", { max_to_keep = 2 })
  manager:save()
  manager:save()
  local left = 0
  for _, name in ipairs(index == 0 and flow.io.listdir "backup" or {}) do left = left + (name:find "shared" and 1 or 0) end
  print("tokens", left)]]

local function start_folders(separate)
  local path = support.file("task.lua", FOLDERS:format(tostring(separate)))
  return support.start(("cd %s && env %s timeout -k 5 60 %s launch --workers 3 task.lua"):format(path:match "^(.*)/", program,
    support.program))
end

-- Where they do not share a folder they wait twice for five seconds, meanwhile the rest is tried.
local unshared
setup(function() unshared = start_folders(true) end)

describe("a cluster that cannot be", function()
  it("is refused under mpirun with another number of processes than TF_CONFIG has workers", function()
    if NO_MPI then return pending(NO_MPI) end
    local text, code = support.run(("env %s %s OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 60 mpirun "
      .. "--oversubscribe -n 3 %s %s"):format(program, config(two_ports(), 0), support.program, script()))
    assert.equal(1, code, text)
    assert.truthy(text:find("TF_CONFIG makes this worker:0 of 2 workers, OpenMPI process %d of 3: unset TF_CONFIG under mpirun, or start "
      .. "each task by itself"), text)
    assert.equal(0, count(text, "done"), text)
  end)

  it("is refused where only some workers encrypt, or where there is no secret for it", function()
    local path, addresses, waits = script(), two_ports(), {}
    for index = 0, 1 do
      waits[index] = start(("FLOW_SHARED_MEMORY=0 FLOW_ENCRYPT=%d "):format(index) .. config(addresses, index), path)
    end
    for index = 0, 1 do
      local text, code = waits[index]()
      check_sentence(text, code, "rank 1 encrypts what it sends, rank 0 does not: set FLOW_ENCRYPT for all workers, or for none")
    end
    local text, code = start("FLOW_SECRET= FLOW_INSECURE=1 FLOW_ENCRYPT=1 " .. config(two_ports(), 0), path)()
    check_sentence(text, code, "FLOW_ENCRYPT=1 needs a secret that all workers have")
    text, code = start("FLOW_ENCRYPT=yes " .. config(two_ports(), 0), path)()
    check_sentence(text, code, 'FLOW_ENCRYPT is 0 or 1, got "yes"')
    local servers = support.file("servers.lua", "require('flow').distribute.ParameterServerStrategy()")
    text, code = start("FLOW_ENCRYPT=1 TF_CONFIG='{\"cluster\":{\"worker\":[\"127.0.0.1:1\"],\"ps\":[\"127.0.0.1:2\"]},"
      .. "\"task\":{\"type\":\"worker\",\"index\":0}}'", servers)()
    check_sentence(text, code, "ParameterServerStrategy: FLOW_ENCRYPT=1, but what variables hold is not encrypted on its way")
  end)

  it("is refused by MPI where srun has no PMI", function()
    if NO_MPI then return pending(NO_MPI) end
    local path, waits = script(nil, "implementation = 'MPI',"), {}
    local port = ports.take(2)
    for rank = 0, 1 do
      waits[rank] = start(("SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=%d SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=localhost "
        .. "SLURM_STEP_TASKS_PER_NODE=2 FLOW_PORT=%d"):format(rank, port), path)
    end
    for rank = 0, 1 do
      local text, code = waits[rank]()
      check_sentence(text, code, "the transport mpi needs a launcher: start the program by mpirun %-n N, or by srun %-%-mpi=pmix")
    end
  end)

  it("is noticed in a batch job whose processes srun did not start", function()
    local path, sentence = script(), "Slurm: the job has 3 tasks, but srun did not start this process, which works alone: start it by srun"
    for rank = 0, 2 do
      local text, code = start(("SLURM_PROCID=%d SLURM_NTASKS=3"):format(rank), path)()
      assert.equal(0, code, text)
      assert.equal(rank == 0 and 1 or 0, count(text, sentence), text)
    end
  end)

  it("ends on both sides where one has another version", function()
    local plugins = os.getenv("FLOWLUA_LIB"):match "^(.*)/"
    local version = support.run(("FLOWLUA_PATH=%slua %s -e 'io.write(flow.version)'"):format(support.root, support.program))
    local other = version:gsub(".$", function(digit) return digit == "9" and "8" or "9" end)
    local folder, path, addresses, waits = support.folder(), script(), two_ports(), {}
    assert.equal(0, os.execute(("cp -r %s/. %s"):format(plugins, folder)))
    local name = folder .. "/" .. os.getenv("FLOWLUA_LIB"):match "[^/]*$"
    local file = io.open(name, "rb")
    local bytes, found = file:read("*a"):gsub(version:gsub("%p", "%%%0") .. "%z", function() return other .. "\0" end)
    file:close()
    assert.is_true(found >= 1)
    os.remove(name)
    file = io.open(name, "wb")
    file:write(bytes)
    file:close()
    for index = 0, 1 do
      local library = index == 1 and ("FLOWLUA_LIB=%s LD_LIBRARY_PATH=%s"):format(name, folder) or ""
      waits[index] = start(library .. " " .. config(addresses, index), path)
    end
    for index = 0, 1 do
      local text, code = waits[index]()
      check_sentence(text, code, ("worker:0 127[%%d.:]+ is flowlua %s, worker:1 127[%%d.:]+ is %s: install the same flowlua everywhere")
        :format(version, other))
    end
    os.execute("rm -r " .. folder)
  end)

  it("does not take back a worker of a generation that is over", function()
    local path, addresses, waits, ready = script(), two_ports(), {}, support.folder() .. "/ready"
    for index = 0, 1 do
      waits[index] = start("DEAD_AFTER=2 STEPS=1000 " .. config(addresses, index), path, index == 1 and ready or nil)
    end
    local process = wait_for(ready)
    os.execute("kill -STOP " .. process)
    local text, code = waits[0]()
    check_sentence(text, code, "worker:1 127[%d.:]+ silent for [%d.]+ s")
    os.execute("kill -CONT " .. process)
    text, code = waits[1]()
    assert.is_true(code ~= 0 and code ~= 124 and code ~= 137, text)
    assert.equal(1, count(text, "flowlua: [^\n]*task.lua:%d+: worker:%d 127[%d.:]+ "), text)
  end)

  it("goes on where another process says that it is one of its tasks", function()
    local path, addresses, waits, ready = script(), two_ports(), {}, support.folder() .. "/ready"
    for index = 0, 1 do waits[index] = start("STEPS=40 " .. config(addresses, index), path, index == 1 and ready or nil) end
    local process = wait_for(ready)
    local text, code = start(config(addresses, 1), path)()
    check_sentence(text, code, ("this process cannot listen on 127.0.0.1:%d: another process has that port: process %s, "):format(
      addresses[2], process))
    for index = 0, 1 do
      text, code = waits[index]()
      assert.equal(0, code, text)
      assert.equal(1, count(text, "done"), text)
    end
  end)

  it("is given up where its chief comes back at another address", function()
    local path, addresses, ready = script "max_restarts = 3, rejoin_timeout = 2,", two_ports(), support.folder() .. "/ready"
    local chief, worker = start("STEPS=1000 " .. config(addresses, 0), path, ready), start("STEPS=1000 " .. config(addresses, 1), path)
    os.execute("kill -KILL " .. wait_for(ready))
    chief()
    local moved = two_ports()
    local again = start("START_WITHIN=3 " .. config({ moved[1], addresses[2] }, 0), path)
    local text, code = worker()
    check_sentence(text, code, ("worker:0 127.0.0.1:%d [^\n]*lost its connection"):format(addresses[1]))
    text, code = again()
    check_sentence(text, code, ("missing: worker:1 127.0.0.1:%d %%(no connection%%)"):format(addresses[2]))
  end)
end)

describe("a folder that the workers do not share", function()
  for _, separate in ipairs { false, true } do
    it(separate and "is named, once" or "is not complained of where they do", function()
      local text, code = (separate and unshared or start_folders(false))()
      assert.equal(0, code, text)
      assert.equal(3, count(text, "tokens\t0\n"), text)
      local wanted = separate and 1 or 0
      assert.equal(wanted, count(text, "%[worker:0%] BackupAndRestore: the workers do not share the folder backup: worker:1, worker:2 do "
        .. "not see what the chief writes there, and without the chief's machine it is lost; name a folder that all of them reach\n"), text)
      assert.equal(wanted, count(text, "CheckpointManager: the workers do not share the folder checkpoints: worker:%d does not see"), text)
      assert.equal(2 * wanted, count(text, "do not share the folder"), text)
    end)
  end
end)
