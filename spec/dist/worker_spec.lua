-- worker_spec.lua: clusters of real processes that meet, add up, and say who is missing when one of them fails.
local support = require "spec.support.init"

local program = support.program:match("^(.*/)") .. "worker_ranks"
local plugins = os.getenv("FLOWLUA_LIB"):match("^(.*/)")

local exists = support.exists

local function start(name, workers, victim, environment)
  return support.start(("%s timeout -k 5 80 %q %s %d %s"):format(environment or "", program, name, workers, victim or ""))
end

local function run(...)
  return (start(...)())
end

local function check_ends(text, codes)
  for rank, code in pairs(codes) do assert.truthy(text:find(("rank %d ended with %d\n"):format(rank, code), 1, true), text) end
  assert.falsy(text:find(": line %d"), text)
end

-- What a rank's call failed with. Times are those of sockets and heartbeats: far from the 30 s that silence may last.
local function check_failure(text, rank, status, most, pattern)
  local found, after, message = text:match("rank " .. rank .. ": (.-) after ([%d.]+) s: ([^\n]*)")
  assert.equal(status, found, text)
  assert.truthy(tonumber(after) <= most, text)
  assert.truthy(message:find(pattern), text)
end

describe("a cluster of workers", function()
  it("adds up, sends, gathers and compares, through memory and through the network", function()
    for workers = 1, 3 do
      for _, memory in ipairs { "1", "0" } do
        local text, codes = run("calls", workers, nil, "FLOW_SHARED_MEMORY=" .. memory), {}
        local engine = workers == 1 and "" or memory == "1" and "shared memory" or "tcp"
        for rank = 0, workers - 1 do codes[rank] = 0 end
        check_ends(text, codes)
        assert.equal(workers, select(2, text:gsub("engine " .. engine .. "\n", "")), text)
      end
    end
  end)

  it("meets by what AUTO is where GPUs add up by NCCL; knows no other names", function()
    local text = run("calls", 2, nil, "WORKER_LOG=1 WORKER_ENGINE=nccl FLOW_SHARED_MEMORY=0")
    check_ends(text, { [0] = 0, 0 })
    assert.equal(2, select(2, text:gsub("engine tcp", "")), text)
    text = run("calls", 2, nil, "WORKER_ENGINE=carrier-pigeon")
    check_failure(text, 0, "invalid argument", 5, 'there is no implementation "carrier%-pigeon" of communication: they are AUTO, RING')
  end)

  it("leaves nothing when it is opened and closed again and again", function()
    local text = run("again", 2, 30)
    check_ends(text, { [0] = 0, 0 })
    assert.equal(2, select(2, text:gsub("after 30 times %+0 descriptors, %+0 threads, %+0 bytes", "")), text)
  end)

  it("names both sides and the first line where texts differ, on all workers, and goes on", function()
    local text = run("differ", 3, 2)
    for rank = 0, 2 do
      check_failure(text, rank, "invalid argument", 5, "^the workers do not have the same model: in line 2 worker:0 127[%d.:]+ has "
        .. '"the name Dense, 10 relu units that are initialized by", worker:2 127[%d.:]+ has "the name Dense, 12 relu units that are '
        .. 'initialized by"; run')
    end
    check_ends(run("differ_and_go_on", 3, 1), { [0] = 0, 0, 0 })
  end)

  it("finds out when workers run different programs", function()
    local text = run("other_program", 2, 1)
    for rank = 0, 1 do
      check_failure(text, rank, "invalid state", 5, "^worker:0 [%d.:]+ gathers 4 bytes, worker:1 [%d.:]+ broadcasts 4 bytes: do all")
    end
    text = run("other_step", 3, 0)
    for rank = 0, 2 do
      check_failure(text, rank, "invalid state", 5, "^worker:0 [%d.:]+ begins a step, worker:1 [%d.:]+ compares the opti")
    end
  end)

  for _, victim in ipairs { 0, 2 } do
    for _, activity in ipairs { "sums", "barrier", "computation" } do
      it(("names worker:%d when it is killed while others are in a %s"):format(victim, activity), function()
        local ends = {}
        for memory = 0, 1 do ends[memory] = start("killed_in_" .. activity, 3, victim, "FLOW_SHARED_MEMORY=" .. memory) end
        for memory = 0, 1 do
          local text = ends[memory]()
          for rank = 0, 2 do
            if rank ~= victim then
              check_failure(text, rank, "aborted", 5, "^worker:" .. victim .. " 127[%d.:]+ lost its connection %(.*%) at step 812")
            end
          end
          check_ends(text, { [victim] = -9, [1] = 1 })
        end
      end)
    end

    it(("names worker:%d when it stands still"):format(victim), function()
      for _, ended in ipairs { start("stopped_in_sums", 3, victim), start("stopped_in_computation", 3, victim) } do
        local text = ended()
        for rank = 0, 2 do
          if rank ~= victim then
            check_failure(text, rank, "aborted", 10, "^worker:" .. victim .. " 127[%d.:]+ silent for [%d.]+ s at step 812")
          end
        end
      end
    end)

    it(("takes worker:%d that ends without goodbye for lost"):format(victim), function()
      local text = run("leaves", 3, victim)
      check_failure(text, 1, "aborted", 5, "^worker:" .. victim .. " 127[%d.:]+ lost its connection")
      check_ends(text, { [victim] = 0, [1] = 1 })
    end)
  end

  it("passes on why a worker cannot go on", function()
    for victim = 0, 1 do
      local text = run("gives_up", 2, victim)
      check_failure(text, 1 - victim, "aborted", 5, "^worker:" .. victim .. " 127[%d.:]+ reports at step 7: train.lua:3: no such file")
    end
  end)

  it("names the worker whose run has failed, where its program goes on, and why", function()
    local ends = {}
    for _, name in ipairs { "failed_calls", "failed_ends", "failed_computes" } do
      for victim = 0, 1 do
        for memory = 0, 1 do ends[#ends + 1] = { victim, start(name, 3, victim, "FLOW_SHARED_MEMORY=" .. memory) } end
      end
    end
    for _, cluster in ipairs(ends) do
      local victim, text = cluster[1], cluster[2]()
      for rank = 0, 2 do
        check_failure(text, rank, "aborted", 10, "^worker:" .. victim .. " 127[%d.:]+ reports at step 7: label 77 of row 1 is outside 0")
      end
    end
  end)

  it("goes on after a run that has failed on all workers", function()
    local first, second = start("failed_alike", 3, 0), start("failed_alike", 2, 1)
    check_ends(first(), { [0] = 0, 0, 0 })
    check_ends(second(), { [0] = 0, 0 })
  end)

  it("logs a verdict only for who has not failed with it or before it", function()
    local ends = {}
    for victim = 0, 1 do
      ends[victim] = { start("fails_too", 2, victim, "WORKER_LOG=1"), start("computes_on", 2, victim, "WORKER_LOG=1") }
    end
    for victim = 0, 1 do
      local logged = ("worker:%d: worker:%d 127[%%d.:]+ reports at step 0: wrong data"):format(1 - victim, victim)
      local text = ends[victim][1]()
      check_ends(text, { [0] = 0, 0 })
      assert.falsy(text:find(logged), text)
      text = ends[victim][2]()
      assert.equal(1, select(2, text:gsub(logged, "")), text)
      check_failure(text, 1 - victim, "aborted", 20, "^worker:" .. victim .. " 127[%d.:]+ reports at step 0: wrong data")
    end
  end)

  it("waits for a worker that computes for long", function() check_ends(run("slow", 2, 1), { [0] = 0, 0 }) end)

  it("blames who did not come in time, not who waited", function()
    local ends = {}
    for victim = 0, 2 do
      ends[victim] = { start("late", 3, victim, "FLOW_SHARED_MEMORY=1"), start("late", 3, victim, "FLOW_SHARED_MEMORY=0") }
    end
    for victim = 0, 2 do
      for _, ended in ipairs(ends[victim]) do
        local text = ended()
        for rank = 0, 2 do
          check_failure(text, rank, "aborted", 8, "^worker:" .. victim .. " 127[%d.:]+.* did not come: worker:%d 127[%d.:]+ reports at "
            .. "step 33: ")
        end
      end
    end
  end)

  it("needs the chief until all have finished", function()
    local text = run("finished_dies", 2, 0)
    check_failure(text, 1, "aborted", 5, "^worker:0 127[%d.:]+ lost its connection")
  end)

  it("does not wait for a worker that has finished", function()
    local ends = {}
    for victim = 0, 1 do ends[victim] = { start("finished_early", 2, victim), start("finished_before_barrier", 2, victim) } end
    for victim = 0, 1 do
      local text = ends[victim][1]()
      check_failure(text, 1 - victim, "aborted", 15, "worker:" .. victim .. " 127[%d.:]+ has finished and takes no part any more")
      text = ends[victim][2]()
      check_failure(text, 1 - victim, "timed out", 5, '^barrier "never": worker:' .. victim .. " 127[%d.:]+ has finished and does not come")
    end
  end)

  it("says who never came", function()
    local text = run("missing", 3, 1)
    for rank = 0, 2, 2 do check_failure(text, rank, "invalid state", 5, "missing: worker:1 127[%d.:]+ %(no connection%)") end
  end)

  it("says on both sides that a secret is missing or another one", function()
    if not exists(plugins .. "libflow_control.so") then return pending("this build has no libflow_control.so (libsodium-dev)") end
    local ends = {}
    for _, name in ipairs { "wrong_secret", "no_secret" } do ends[name] = start(name, 2, 1, "FLOW_SECRET=sixteen-bytes-or-more") end
    for name, words in pairs {
      wrong_secret = { "is not sealed with this cluster's secret: is FLOW_SECRET the same", "without a word: is FLOW_SECRET the same" },
      no_secret = { "it has no secret, this process has one", "it has a secret, this process has none" },
    } do
      local text = ends[name]()
      check_failure(text, 0, "invalid state", 5, "missing: worker:1 127[%d.:]+ %(no connection%); turned away: .*" .. words[1])
      check_failure(text, 1, "invalid state", 5, "^worker:0 127[%d.:]+ was not reached .*" .. words[2])
    end
  end)

  it("does not begin when workers want to communicate in different ways", function()
    local text = run("other_engine", 2, 1)
    for rank = 0, 1 do
      check_failure(text, rank, "invalid state", 5, "do not fit together: communication by %a+ and communication by %a+")
    end
  end)

  it("keeps jobs apart that use the same addresses", function()
    local text = run("other_job", 2, 1)
    check_failure(text, 1, "invalid state", 5, '^worker:0 127[%d.:]+ belongs to the job "spec", worker:1 127[%d.:]+ to "another"')
    check_failure(text, 0, "invalid state", 5, "missing: worker:1")
  end)
end)

describe("a cluster of workers that mpirun started", function()
  local missing = not exists(plugins .. "libflow_mpi.so") and "this build has no libflow_mpi.so (libopenmpi-dev)"
    or os.execute("command -v mpirun >/dev/null") ~= 0 and "mpirun is not installed (openmpi-bin)"
    or os.getenv("FLOW_SANITIZED") and "Open MPI has its own findings under sanitizers"

  local function start_mpirun(name, workers, victim, environment)
    return support.start(("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 WORKER_LOG=1 %s "
      .. "timeout -k 5 60 mpirun --quiet -n %d %q %s %d %s"):format(environment or "", workers, program, name, workers, victim or ""))
  end
  local function mpirun(...) return start_mpirun(...)() end

  local function with_mpi(name, f)
    it(name, function()
      if missing then return pending(missing) end
      f()
    end)
  end

  with_mpi("finds itself without addresses, and is sealed by its own secret", function()
    local text, code = mpirun("calls", 3)
    assert.equal(0, code, text)
    assert.equal(3, select(2, text:gsub("engine mpi, shared memory\n", "")), text)
    if exists(plugins .. "libflow_control.so") then
      assert.equal(3, select(2, text:gsub("listening on 127.0.0.1:%d+, sealed; waits for ", "")), text)
    end
  end)

  -- Whichever allocation of rank 0 fails while they meet: rank 1 is told, and does not wait in a call to which rank 0 does not come.
  with_mpi("ends at once where one process has no memory left", function()
    local told, ended = 0, false
    for allocation = 0, 40 do
      local text, code = mpirun("no_memory", 2, 0, "WORKER_ALLOCATIONS=" .. allocation)
      assert.falsy(text:find "within %d+ s", text)
      if text:find("rank 1: input/output error after [%d.]+ s: 1 of the 2 processes could not begin; their own") then told = told + 1 end
      assert.truthy(code ~= 124, text)
      ended = not text:find "out of memory"
      if ended then break end
    end
    assert.is_true(ended)
    assert.is_true(told >= 3, told)
  end)

  -- Each rank writes its listening ports, sends a byte to all that there are, and goes on adding up.
  local STRANGERS = [[
    local flow = require "flow"
    local strategy = flow.distribute.MultiWorkerMirroredStrategy { communication_options = { heartbeat = 0.5, dead_after = 3 } }
    local sockets, ports = {}, {}
    local pid = io.open("/proc/self/stat"):read("*n")
    for line in io.popen(("ls -l /proc/%d/fd"):format(pid)):lines() do sockets[line:match "socket:%[(%d+)%]" or ""] = true end
    for _, name in ipairs { "tcp", "tcp6" } do
      for line in io.lines("/proc/self/net/" .. name) do
        local address, port, state, inode = line:match "^%s*%d+: (%x+):(%x+) %x+:%x+ (%x%x) %S+ %S+ %S+ +%d+ +%d+ (%d+)"
        local chosen = not arg[1] or (arg[1] == os.getenv "OMPI_COMM_WORLD_RANK" and address == "00000000")
        if state == "0A" and sockets[inode] and not ports[port] and chosen then
          print("listens", address, tonumber(port, 16))
          ports[port] = true
          os.execute(("bash -c '(exec 3<>/dev/tcp/127.0.0.1/%d; printf x >&3; sleep 20) >/dev/null 2>&1 &'"):format(tonumber(port, 16)))
        end
      end
    end
    os.execute "sleep 1"
    local sum = 0
    for i = 1, 20 do sum = sum + strategy:gather(flow.tensor { i }, 1):sum():item() end
    print("sum", sum)]]

  with_mpi("listens where FLOW_HOST says, by a name, an address or an interface", function()
    local text, code = mpirun("calls", 2, nil, "FLOW_HOST=no-such-interface")
    assert.truthy(code ~= 0, text)
    assert.truthy(text:find('FLOW_HOST is "no-such-interface", which is neither an interface', 1, true), text)
    local name, address
    for line in io.popen("ip -o -4 addr show up scope global 2>/dev/null"):lines() do
      name, address = line:match "^%d+: (%S+)%s+inet ([%d.]+)/"
      if name then break end
    end
    if not name then return pending "this machine has no address but 127.0.0.1" end
    for _, host in ipairs { name, address } do
      text, code = mpirun("calls", 2, nil, "FLOW_HOST=" .. host)
      assert.equal(0, code, text)
      assert.equal(2, select(2, text:gsub("listening on " .. address:gsub("%.", "%%.") .. ":%d+", "")), text)
    end
  end)

  with_mpi("has no port on one machine but its own, and strangers' bytes do not stop it", function()
    local script = support.file("strangers.lua", STRANGERS)
    for _, command in ipairs {
      ("mpirun --quiet -n 2 %q %q"):format(support.program, script),
      ("%q launch --engine mpi --workers 2 %q"):format(support.program, script),
    } do
      local text, code = support.run("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
        .. "FLOW_SHARED_MEMORY=0 timeout -k 5 60 " .. command)
      assert.equal(0, code, text)
      assert.equal(2, select(2, text:gsub("sum\t420\n", "")), text)
      assert.equal(2, select(2, text:gsub("listens\t0100007F\t%d+\n", "")), text)
      assert.equal(2, select(2, text:gsub("listens", "")), text)
    end
  end)

  -- Where the user has chosen TCP: nothing gets through to the rank that a stranger stops, but all others learn who it is.
  with_mpi("names a rank whose MPI does not come back", function()
    local script = support.file("strangers.lua", STRANGERS)
    local ends = {}
    for victim = 0, 1 do
      ends[victim] = support.start(("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
        .. "OMPI_MCA_btl=self,tcp FLOW_SHARED_MEMORY=0 timeout -k 5 60 mpirun --quiet -n 2 %q %q %d"):format(support.program, script,
        victim))
    end
    for victim = 0, 1 do
      local text, code = ends[victim]()
      assert.truthy(code ~= 0 and code < 124, text)
      assert.truthy(text:find(("flowlua: [^\n]*worker:%d 127[%%d.:]+ reports at step %%d+: a call of mpi has not come back for %%d+ s")
        :format(victim)), text)
      assert.falsy(text:find "sum", text)
    end
  end)

  with_mpi("can add up over TCP as well", function()
    local text, code = mpirun("calls", 2, nil, "WORKER_ENGINE=ring FLOW_SHARED_MEMORY=0")
    assert.equal(0, code, text)
    assert.equal(2, select(2, text:gsub("engine tcp\n", "")), text)
  end)

  -- mpirun ends the others soon: the first line of the log is what they surely say.
  with_mpi("names a rank that is killed", function()
    local ends = { [0] = start_mpirun("killed_in_sums", 3, 0), [2] = start_mpirun("killed_in_sums", 3, 2) }
    for victim = 0, 2, 2 do
      local text, code = ends[victim]()
      assert.truthy(code ~= 0, text)
      assert.truthy(text:find(("worker:%%d: worker:%d 127[%%d.:]+ lost its connection"):format(victim)), text)
    end
  end)

  with_mpi("names a rank that stands still", function()
    local text = mpirun("stopped_in_sums", 3, 2)
    assert.truthy(text:find("worker:0: worker:2 127[%d.:]+ silent for [%d.]+ s at step 812, in training"), text)
  end)
end)
