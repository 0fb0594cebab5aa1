-- launch_spec.lua: flowlua launch, with small scripts as tasks: what they find, how their output comes out, how the cluster ends, and that
-- nothing is left of it.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"

local program = support.command
local run = support.run

-- What a shell script can wait with: until the text is in a file, at most ten seconds.
local WAIT = 'await() { for i in $(seq 200); do grep -q "$1" "$2" 2>/dev/null && return; sleep 0.05; done; echo "no $1 in $2"; }; '

local function launch(options, script, arguments)
  return run(("timeout -k 5 60 %s launch %s %s %s"):format("env " .. program, options, support.file("task.lua", script), arguments or ""))
end

local count = support.count

-- The lines of a task, without the prefix.
local function lines_of(text, name)
  local lines = {}
  for line in text:gmatch("[^\n]*\n") do
    local rest = line:match("^%[" .. name:gsub("%p", "%%%0") .. "%] (.*)\n$")
    if rest then lines[#lines + 1] = rest end
  end
  return lines
end

-- Begins a cluster in the background whose tasks say "ready", runs `act` with $launcher, and waits for it.
local function while_running(script, act, options)
  local path = support.file("task.lua", script)
  local folder = path:match("^(.*)/")
  return run(("cd %s; bash -c '%s env %s %s launch %s task.lua >out 2>&1 & launcher=$!; "
    .. "await \"worker:0. ready\" out; await \"worker:1. ready\" out; %s wait $launcher; code=$?; cat out; exit $code'"):format(
    folder, WAIT, program:match("^%S+"), support.program, options or "", act)), folder
end

-- Tasks with a child, a child in its own session, and one whose parent has gone.
local FAMILY = [[
  os.execute "sleep 77 & echo $! >>family; setsid sleep 77 & echo $! >>family; (setsid sh -c 'echo $$ >>family; exec sleep 77' &)"
  io.stdout:setvbuf("no")
  while true do
    local file, lines = io.open "family", 0
    for _ in file:lines() do lines = lines + 1 end
    file:close()
    if lines >= 6 then break end
  end
  print "ready"
  if END then os.exit(0) end
  os.execute "sleep 60; true"]]
local ALIVE = "is_alive() { tr '\\0' ' ' <\"/proc/$1/cmdline\" | grep -q '^sleep 77'; } 2>/dev/null; "
  .. "for i in $(seq 40); do left=$(for id in $(cat family); do is_alive $id && echo $id; done); "
  .. "[ -z \"$left\" ] && break; sleep 0.1; done; [ -z \"$left\" ] && echo nobody || echo left: $left"

local function check_nobody(folder)
  local output = run("cd " .. folder .. "; wc -l <family; " .. ALIVE)
  assert.equal("6\nnobody\n", output)
end

describe("flowlua launch", function()
  it("gives each task the cluster, its place, a secret and its arguments", function()
    local output, code = launch("--workers 2 --chief --parameter-servers 1 --evaluator", [[
      print(os.getenv "TF_CONFIG")
      print(os.getenv "FLOW_SECRET")
      print(#arg, table.concat(arg, "|"), io.read("*a") == "", os.getenv "PMI_RANK")]], "-- --epochs 3 'a  b' -- --workers")
    assert.equal(0, code, output)
    local secrets, addresses = {}, {}
    for _, name in ipairs { "chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0" } do
      local lines = lines_of(output, name)
      assert.equal("5\t--epochs|3|a  b|--|--workers\ttrue\tnil", lines[3], output)
      assert.truthy(lines[2]:find("^%x+$") and #lines[2] == 64, lines[2])
      secrets[lines[2]] = true
      local job, index = name:match("(%a+):(%d)")
      local cluster, task = lines[1]:match('^{"cluster":(.*),"task":(.*)}$')
      assert.equal(('{"index":%s,"type":"%s"}'):format(index, job), task)
      addresses[cluster] = true
    end
    local cluster = next(addresses)
    assert.is_nil(next(addresses, cluster))
    assert.is_nil(next(secrets, (next(secrets))))
    assert.equal(4, count(cluster, "127%.0%.0%.1:%d+"))
    output, code = launch("--workers 0 --chief --parameter-servers 1", [[print(os.getenv "TF_CONFIG")]])
    assert.equal(0, code, output)
    assert.equal(2, count(output, '"cluster":{"chief":%["127%.0%.0%.1:%d+"%],"ps":%["127%.0%.0%.1:%d+"%]}'), output)
    for _, part in ipairs { '"chief":%["[^"]*"%]', '"worker":%["[^"]*","[^"]*"%]', '"ps":%["[^"]*"%]' } do
      assert.truthy(cluster:find(part), cluster)
    end
    assert.falsy(cluster:find("evaluator", 1, true))
  end)

  it("hands over the address, listening, and no other descriptor", function()
    local output, code = launch("--workers 2", [[
      local ffi = require "ffi"
      ffi.cdef "int getsockname(int, void *, unsigned *); int getsockopt(int, int, int, void *, unsigned *);"
      local descriptor = tonumber(os.getenv "FLOW_LISTEN_DESCRIPTOR")
      local address, size, listens = ffi.new "uint8_t[16]", ffi.new("unsigned[1]", 16), ffi.new "int[1]"
      assert(ffi.C.getsockname(descriptor, address, size) == 0)
      size[0] = 4
      assert(ffi.C.getsockopt(descriptor, 1, 30, listens, size) == 0)        -- SOL_SOCKET, SO_ACCEPTCONN
      local port = address[2] * 256 + address[3]
      local cluster, index = os.getenv("TF_CONFIG"):match '"worker":%[(.-)%]', os.getenv("TF_CONFIG"):match '"index":(%d)'
      local list = {}
      for text in cluster:gmatch '"(.-)"' do list[#list + 1] = text end
      print(listens[0], list[index + 1] == ("%d.%d.%d.%d:%d"):format(address[4], address[5], address[6], address[7], port))
      for link in io.popen("ls -l /proc/$PPID/fd"):lines() do print(link:match "[a-z]+:%[%d+%]") end]])
    assert.equal(0, code, output)
    local outside = run("ls -l /proc/self/fd")                  -- what this process hands to all it starts
    for index = 0, 1 do
      local lines, counts, seen = lines_of(output, "worker:" .. index), { pipe = 0, socket = 0 }, {}
      assert.equal("1\ttrue", lines[1])
      for i = 2, #lines do
        local kind = lines[i]:match "^%a+"
        if counts[kind] and not seen[lines[i]] and not outside:find(lines[i], 1, true) then counts[kind] = counts[kind] + 1 end
        seen[lines[i]] = true
      end
      assert.same({ pipe = 3, socket = 1 }, counts, output)      -- the third pipe is popen's
    end
  end)

  it("shares out the cores, and says who takes a port", function()
    local cores = tonumber((run(program .. " -e 'print(flow.config.get_threads())'")))
    local script = "print(require('flow').config.get_threads())"
    local output = launch("--workers 2", script)
    assert.same({ tostring(math.max(1, math.floor(cores / 2))) }, lines_of(output, "worker:1"), output)
    assert.same({ "5" }, lines_of(launch("--threads 5", script), "worker:0"))
    assert.same({ tostring(cores) }, lines_of(launch("--workers 1 --parameter-servers 2", script), "worker:0"))
    assert.equal("3\n", (run("FLOW_THREADS=3 " .. program .. " -e 'print(flow.config.get_threads())'")))
    assert.equal("7\n", (run("FLOW_THREADS=3 " .. program .. " -e 'flow.config.set_threads(7) print(flow.config.get_threads())'")))
    output = run("FLOW_THREADS=many " .. program .. " -e 'print(flow.config.get_threads() + flow.config.get_threads())'")
    assert.equal(1, count(output, "FLOW_THREADS=many: a whole number from 1 to 512 is expected"))
    assert.truthy(output:find("\n" .. 2 * cores .. "\n$") or output:find("^" .. 2 * cores .. "\n"), output)
    -- A task of one cluster holds the port that the other one wants.
    local held = support.file("task.lua", ([[
      local port = tonumber(os.getenv("TF_CONFIG"):match ":(%%d+)")
      print(io.popen("%s launch --workers 1 --start-port " .. port .. " nothing.lua 2>&1"):read("*a"))]]):format(program))
    output = run(program .. " launch --workers 1 " .. held)
    assert.truthy(output:find("worker:0: port %d+ is held by process %d+ %(.*flowlua.*task.lua%): end it, or take another %-%-start%-port"),
      output)
  end)

  it("runs modules, in the folder it was called from", function()
    local folder = support.file("task.lua", "print('task', ...)"):match("^(.*)/")
    local output, code = run(("cd %s && %s launch --workers 1 -m task -- 1 2"):format(folder, program))
    assert.equal("[worker:0] task\t1\t2\n", output)
    assert.equal(0, code)
  end)

  it("says what is wrong with its command line", function()
    for options, sentence in pairs {
      [""] = "which script? flowlua launch --workers 2 train.lua -- --epochs 3",
      ["-m"] = "which script?",
      ["--workers 0 x.lua"] = "--workers 0: nobody would train: --chief is missing, or a worker",
      ["--workers 1.5 x.lua"] = "--workers is a whole number from 0 to 1000, got 1.5",
      ["--workers -1 x.lua"] = "--workers is a whole number from 0 to 1000, got -1",
      ["x.lua --epochs 3"] = "unknown option --epochs (write arguments of the script after --)",
      ["x.lua y"] = '"y": arguments of the script come after --: flowlua launch x.lua -- y',
      ["--engine gloo x.lua"] = '--engine is ring or mpi, got "gloo"',
      ["--kill-after -1 x.lua"] = "--kill-after is a number of seconds, got -1",
      ["--start-port 65535 x.lua"] = "--start-port 65535: 2 tasks need the ports up to 65536",
      ["--log-dir /dev/null/x x.lua"] = "--log-dir: cannot make the folder /dev/null: Not a directory",
      ["--engine mpi --chief x.lua"] = "has workers only",
      ["--hosts , x.lua"] = '--hosts is a list such as a,b, got ","',
      ["--hosts a:0 x.lua"] = '--hosts is a list such as a,b:2 with 1 to 1000 workers for each, got "a:0"',
      ["--hosts -oProxyCommand=x x.lua"] = 'got "-oProxyCommand=x"',
      ["--hosts a,b:2 --workers 4 x.lua"] = "--workers 4: the hosts have room for 3 (--hosts a,b:2)",
      ["--ssh ssh x.lua"] = "--ssh goes with --hosts: which machines?",
    } do
      local output, code = run(program .. " launch " .. options)
      assert.equal(1, code, output)
      assert.equal(1, (output:find("flowlua launch: ", 1, true)), output)
      assert.truthy(output:find(sentence, 1, true), output)
      assert.falsy(output:find("traceback", 1, true), output)
    end
    local output, code = run(program .. " launch --help")
    assert.truthy(output:find("^Usage: flowlua launch"))
    assert.equal(0, code)
  end)
end)

describe("the output of tasks", function()
  it("comes in whole lines with the task in front, stdout as stdout", function()
    local folder = support.file("task.lua", [[
      io.stdout:setvbuf("no")
      for i = 1, 300 do io.write(("x"):rep(i * 7 % 200), "-", i) io.write("\n") io.stderr:write("e", i, "\n") end
      print(("long"):rep(50000))
      io.write("last")]]):match("^(.*)/")
    local _, code = run(("cd %s && %s launch --workers 3 --log-dir logs/new task.lua >out 2>err"):format(folder, program))
    assert.equal(0, code)
    local out, err = run("cat " .. folder .. "/out"), run("cat " .. folder .. "/err")
    for index = 0, 2 do
      local lines, errors = lines_of(out, "worker:" .. index), lines_of(err, "worker:" .. index)
      assert.equal(302, #lines)
      for i = 1, 300 do assert.equal(("x"):rep(i * 7 % 200) .. "-" .. i, lines[i]) end
      assert.equal(("long"):rep(50000), lines[301])
      assert.equal("last", lines[302])
      assert.equal(300, #errors)
      assert.equal("e300", errors[300])
      local log = run(("cat %s/logs/new/worker-%d.log"):format(folder, index))
      assert.equal(600 + 2, count(log, "\n"))
      assert.truthy(log:find("\nlast", 1, true) and log:find("e300\n", 1, true) and not log:find("[worker", 1, true))
    end
    assert.equal(906, count(out, "\n"))
    assert.equal(900, count(err, "\n"))
  end)

  it("shows the last state of a line that is drawn again and again", function()
    local output = launch("--workers 1", [[
      io.stdout:setvbuf("no")
      for i = 1, 20 do io.write("\r\27[K", i, "/20 [bar]") end
      io.write("\nplain\r\nupdate 1\rupdate 2\r\n")]])
    assert.equal("[worker:0] 20/20 [bar]\n[worker:0] plain\n[worker:0] update 2\n", output)
  end)

  it("ends the job when nobody reads it any more", function()
    local output = run(("bash -c 'timeout -k 5 30 env %s launch %s | head -n 1; echo ${PIPESTATUS[0]}'"):format(program,
      support.file("task.lua", "while true do print 'yes' end")))
    assert.truthy(output:gsub("%[worker:%d%] flowlua: ended by SIGTERM\n", ""):find("^%[worker:%d%] yes\n141\n$"), output)
  end)
end)

describe("a cluster", function()
  it("ends when a task fails, with its exit code and name", function()
    local output, code = launch("--workers 3 --kill-after 0.2", [[
      if os.getenv("TF_CONFIG"):find '"index":1' then os.exit(7) end
      os.execute "sleep 60"]])
    assert.equal(7, code, output)
    assert.truthy(output:find("flowlua launch: worker:1 exited with 7; worker:0, worker:2: 0.2 s to end\n", 1, true), output)
    assert.truthy(output:find("flowlua launch: worker:0, worker:2 did not end within 0.2 s: SIGTERM\n", 1, true), output)
    assert.falsy(output:find("SIGKILL", 1, true), output)
  end)

  it("names the signal that killed a task, and kills those who ignore SIGTERM", function()
    local output, code = launch("--workers 2 --kill-after 0.2", [[
      local ffi = require "ffi"
      ffi.cdef "void (*signal(int, void (*)(int)))(int); int kill(int, int); int getpid(void); int usleep(unsigned);"
      if os.getenv("TF_CONFIG"):find '"index":1' then
        while not io.open(arg[0] .. ".ignores") do ffi.C.usleep(10000) end
        ffi.C.kill(ffi.C.getpid(), 9)
      end
      ffi.C.signal(15, ffi.cast("void (*)(int)", 1))
      io.open(arg[0] .. ".ignores", "w"):close()
      while true do ffi.C.usleep(1000000) end]])
    assert.equal(137, code, output)
    assert.truthy(output:find("worker:1 was killed by SIGKILL; worker:0: 0.2 s to end\n", 1, true), output)
    assert.truthy(output:find("worker:0 did not end within 0.2 s: SIGKILL\n", 1, true), output)
  end)

  it("ends parameter servers when all workers are done", function()
    local output, code = launch("--workers 1 --parameter-servers 1 --kill-after 0.2", [[
      if os.getenv("TF_CONFIG"):find '"type":"ps"' then os.execute "sleep 60" end print "done"]])
    assert.equal(0, code, output)
    assert.equal("[worker:0] done\nflowlua launch: ps:0 did not end within 0.2 s: SIGTERM\n[ps:0] flowlua: ended by SIGTERM\n", output)
  end)

  it("passes Ctrl-C and SIGTERM on to all", function()
    local output, _, code
    output = while_running([[
      io.stdout:setvbuf("no") print "ready"
      local flow = require "flow" local a = flow.ones { 8, 8 } while true do a = a * 1 end]], "kill -INT $launcher;")
    assert.equal(2, count(output, "flowlua: interrupted\n"), output)
    assert.falsy(output:find("flowlua launch", 1, true), output)
    output = while_running("print 'ready' os.execute 'sleep 60; true'", "kill -TERM $launcher;")
    assert.equal("", (output:gsub("%[worker:%d%] ready\n", ""):gsub("%[worker:%d%] flowlua: ended by SIGTERM\n", "")))
    _, code = run("true")
    assert.equal(0, code)
  end)

  it("takes a signal that comes twice at once, to the process and to its group, for one", function()
    local output = while_running([[
      local ffi = require "ffi"
      ffi.cdef "void (*signal(int, void (*)(int)))(int); int usleep(unsigned);"
      ffi.C.signal(2, ffi.cast("void (*)(int)", 1))
      io.stdout:setvbuf("no") print "ready"
      ffi.C.usleep(700000) print "finished"]], "kill -INT $launcher; sleep 0.05; kill -INT $launcher;")
    assert.equal(2, count(output, "finished\n"), output)
    assert.falsy(output:find("killed", 1, true), output)
  end)

  it("is killed by the second signal", function()
    local output = while_running([[
      local ffi = require "ffi"
      ffi.cdef "void (*signal(int, void (*)(int)))(int); int usleep(unsigned);"
      ffi.C.signal(15, ffi.cast("void (*)(int)", 1))
      print "ready"
      while true do ffi.C.usleep(1000000) end]], "kill -TERM $launcher; sleep 0.5; kill -TERM $launcher;")
    assert.truthy(output:find("flowlua launch: killed\n$"), output)
  end)

  it("ends what a task started when the task has ended", function()
    local output = launch("--workers 2", [[
      local path = arg[0] .. ".id"
      if os.getenv("TF_CONFIG"):find '"index":0' then os.execute("sleep 77 & echo $! >" .. path) os.exit(0) end
      for _ = 1, 100 do
        local file = io.open(path)
        local id = file and file:read "*n"
        if file then file:close() end
        local process = id and io.open("/proc/" .. id .. "/cmdline")
        if id and not (process and process:read "*a" ~= "") then print "gone" break end
        os.execute "sleep 0.05"
      end]])
    assert.equal("[worker:1] gone\n", output)
  end)

  it("leaves no process behind: when it ends", function()
    local output, folder = while_running((FAMILY:gsub("END", "true")), "")
    assert.falsy(output:find("no worker", 1, true), output)
    check_nobody(folder)
  end)

  it("leaves no process behind: when the launcher is killed", function()
    local output, folder = while_running((FAMILY:gsub("END", "false")), "kill -KILL $launcher;")
    assert.falsy(output:find("no worker", 1, true), output)
    check_nobody(folder)
  end)

  it("leaves no process behind: when the process that has the tasks is killed", function()
    local output, folder = while_running((FAMILY:gsub("END", "false")), "kill -KILL $(pgrep -P $launcher);")
    assert.falsy(output:find("no worker", 1, true), output)
    check_nobody(folder)
  end)

  it("shows its secret on no command line", function()
    local output, code = launch("--workers 1", clusters.FIND_SECRET)
    assert.equal("[worker:0] 64\t0\n", output)
    assert.equal(0, code)
  end)
end)

describe("the tasks of a launched cluster", function()
  for _, engine in ipairs { "ring", "mpi" } do
    it("meet in a strategy by " .. engine, function()
      local missing = support.missing_engine(engine, true)
      if missing then return pending(missing) end
      local output, code = launch("--workers 2 --engine " .. engine, [[
        local strategy = require("flow").distribute.MultiWorkerMirroredStrategy()
        print(strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync)]])
      assert.equal(0, code, output)
      for index = 0, 1 do assert.truthy(output:find(("[worker:%d] %d\t2\n"):format(index, index), 1, true), output) end
    end)
  end

  it("say a mistake once each", function()
    local output, code = launch("--workers 3", [[
      local flow = require "flow"
      local strategy = flow.distribute.MultiWorkerMirroredStrategy()
      for step = 1, 1e9 do
        if step == 20 and strategy.cluster_resolver.task_id == 1 then error "wrong data" end
        strategy:reduce("SUM", flow.tensor { 3 })
      end]])
    assert.equal(1, code, output)
    for index = 0, 2 do assert.equal(1, count(output, ("%%[worker:%d%%] [^\n]*wrong data"):format(index)), output) end
    output = launch("--workers 2", [[
      local flow = require "flow"
      local strategy = flow.distribute.MultiWorkerMirroredStrategy()
      local index = strategy.cluster_resolver.task_id
      strategy:run(function(x)
        return flow.distribute.get_replica_context():all_reduce("SUM", index == 1 and x:exp() or x)
      end, { flow.tensor { 3 } })]])
    for index = 0, 1 do
      assert.equal(1, count(output, ("%%[worker:%d%%] [^\n]*do not do the same: they run different plans"):format(index)), output)
    end
    assert.truthy(output:find("worker:1 127[%d.:]+ and this one, worker:0 127[%d.:]+, do not do the same"), output)
  end)

  it("can be told how long to wait, and when a silent one is lost", function()
    local script = [[
      local flow = require "flow"
      if os.getenv("TF_CONFIG"):find '"index":1' then os.execute "sleep 60" end
      flow.distribute.MultiWorkerMirroredStrategy { communication_options = { %s } }]]
    local output, code = launch("--workers 2 --kill-after 0.2", script:format "start_within = 1, heartbeat = 0.2, dead_after = 3")
    assert.equal(1, code, output)
    assert.truthy(output:find("gave up after 1 s, missing: worker:1 127[%d.:]+ %(no connection%)"), output)
    output = launch("--workers 2 --kill-after 0.2", script:format "dead_after = 1.5")
    assert.truthy(output:find("dead_after is 1.5 s and heartbeat 1 s", 1, true), output)
  end)

  it("neither wait for parameter servers and evaluators nor are ended by them", function()
    local output, code = launch("--workers 2 --parameter-servers 2 --evaluator --kill-after 5", [[
      local flow = require "flow"
      local strategy = flow.distribute.MultiWorkerMirroredStrategy()
      if strategy.cluster_resolver.task_type == "worker" then os.execute "sleep 1" end       -- the others have ended long ago
      print("sum", strategy:reduce("SUM", flow.tensor { 3 }):item(), strategy.num_replicas_in_sync)]])
    assert.equal(0, code, output)
    for index = 0, 1 do
      assert.truthy(output:find(("[worker:%d] sum\t6\t2\n"):format(index), 1, true), output)
      assert.truthy(output:find(("[ps:%d] MultiWorkerMirroredStrategy has no parameter servers: this process, ps:%d, has nothing to do")
        :format(index, index), 1, true), output)
    end
    assert.truthy(output:find("[evaluator:0] sum\t3\t1\n", 1, true), output)
    assert.falsy(output:find("flowlua launch", 1, true), output)

    -- A ps that never starts is not waited for.
    output, code = launch("--workers 2 --parameter-servers 1 --kill-after 0.2", [[
      if os.getenv("TF_CONFIG"):find '"type":"ps"' then os.execute "sleep 60" end
      local strategy = require("flow").distribute.MultiWorkerMirroredStrategy()
      print(strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync)]])
    assert.equal(0, code, output)
    for index = 0, 1 do assert.truthy(output:find(("[worker:%d] %d\t2\n"):format(index, index), 1, true), output) end
  end)
end)

describe("flowlua launch --engine mpi", function()
  local missing = os.execute("command -v mpirun >/dev/null") ~= 0 and "mpirun is not installed (openmpi-bin)"

  local function with_mpirun(name, f)
    it(name, function()
      if missing then return pending(missing) end
      f()
    end)
  end

  with_mpirun("runs ranks of mpirun, without a secret", function()
    local path = support.file("task.lua", [[
      io.stdout:setvbuf("no")
      for i = 1, 100 do io.write(i, " ") io.write("[1,5]<x", ("y"):rep(i * 13), "\n") end
      io.stderr:write(os.getenv "OMPI_COMM_WORLD_RANK", os.getenv "OMPI_COMM_WORLD_SIZE", tostring(os.getenv "FLOW_SECRET"),
        tostring(os.getenv "TF_CONFIG"), arg[1], "\n")]])
    local folder = path:match("^(.*)/")
    local output, code = run(("cd %s && FLOW_SECRET=0123456789abcdef timeout -k 5 60 env %s launch --engine mpi --workers 3 "
      .. "--log-dir . task.lua -- 'a b'"):format(folder, program))
    assert.equal(0, code, output)
    for index = 0, 2 do
      local lines, seen = lines_of(output, "worker:" .. index), {}
      assert.equal(101, #lines)
      for _, line in ipairs(lines) do seen[line] = true end
      for i = 1, 100 do assert.is_true(seen[i .. " [1,5]<x" .. ("y"):rep(i * 13)], i) end
      assert.is_true(seen[index .. "3nilnila b"], output)
      assert.truthy(run(("cat %s/worker-%d.log"):format(folder, index)):find("100 [1,5]<xyyy", 1, true))
    end
    assert.equal(303, count(output, "\n"))
  end)

  with_mpirun("tells which rank failed, and how", function()
    local function fail_by(command)
      return launch("--engine mpi --workers 2",
        ("if os.getenv 'OMPI_COMM_WORLD_RANK' == '1' then %s end os.execute 'sleep 60'"):format(command))
    end
    local output, code = fail_by "os.exit(5)"
    assert.equal(5, code, output)
    assert.truthy(output:find("flowlua launch: worker:1 exited with 5\n", 1, true), output)
    output, code = fail_by "os.execute 'kill -9 $PPID'"
    assert.equal(137, code, output)
    assert.truthy(output:find("flowlua launch: worker:1 was killed by SIGKILL\n", 1, true), output)
  end)

  with_mpirun("passes Ctrl-C on to the ranks", function()
    local output = while_running([[
      io.stdout:setvbuf("no") print "ready"
      local flow = require "flow" local a = flow.ones { 8, 8 } while true do a = a * 1 end]], "kill -INT $launcher;", "--engine mpi")
    assert.truthy(output:find("%[worker:%d%] flowlua: interrupted\n"), output)
  end)

  with_mpirun("leaves no process behind when the launcher is killed", function()
    local output, folder = while_running((FAMILY:gsub("END", "false")), "kill -KILL $launcher;", "--engine mpi")
    assert.falsy(output:find("no worker", 1, true), output)
    check_nobody(folder)
  end)

  -- A program that says it is mpirun, and what it was asked.
  local function with_program(text, options, act)
    local path = support.file("mpirun", "#!/bin/sh\n" .. text)
    os.execute("chmod +x " .. path)
    return run(("PATH=%s:$PATH %s timeout -k 5 30 env %s launch --engine mpi %s x.lua -- y"):format(path:match("^(.*)/"), act or "",
      program, options))
  end

  it("asks mpirun for the hosts, and kills one that hangs", function()
    local output, code = with_program([[
      [ "$1" = --version ] && { echo "mpirun (Open MPI) 5.0.7"; exit; }
      echo "$OMPI_ALLOW_RUN_AS_ROOT $FLOW_THREADS $@"
      trap "" TERM; while :; do sleep 1; done]], "--hosts a,b:2 --threads 3 --kill-after 0.2", "timeout --foreground -s TERM 1")
    assert.truthy(output:find("^%[mpirun%] 1 3 %-%-tag%-output .* %-n 3 %-x FLOW_THREADS .*%-x FLOWLUA_PATH .*%-H a,b:2 "), output)
    assert.truthy(output:find("%-H a,b:2 [^ ]*flowlua %-%-rank [^ ]*flowlua x.lua y\n"), output)
    assert.truthy(output:find("\nflowlua launch: mpirun did not end within 0.2 s: SIGKILL\n$"), output)
    assert.equal(124, code, output)
  end)

  it("tells another MPI from Open MPI", function()
    local output, code = with_program("echo HYDRA build details:", "")
    assert.equal(1, code)
    assert.truthy(output:find("^flowlua launch: %-%-engine mpi needs Open MPI, but /.*/mpirun %-%-version says: HYDRA build details:\n"),
      output)
  end)

  it("says what is missing without mpirun", function()
    local output, code = run("PATH=/nowhere " .. program .. " launch --engine mpi x.lua")
    assert.equal(1, code)
    assert.equal("flowlua launch: --engine mpi needs mpirun, which is not in PATH: install openmpi-bin\n", output)
  end)
end)
