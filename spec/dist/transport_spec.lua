-- transport_spec.lua: groups of real processes add up, fail and give up through each transport that this build and machine have.
local support = require "spec.support.init"

local program = support.program:match("^(.*/)") .. "transport_ranks"
local strangers = support.program:match("^(.*/)") .. "strangers"
local plugins = os.getenv("FLOWLUA_LIB"):match("^(.*/)")

local exists = support.exists

-- How often the text holds the pattern.
local count = support.count

-- What a rank said that its call failed with, and after how many seconds.
local function check_failure(text, rank, status, seconds, reason)
  local found, after, message = text:match("rank " .. rank .. " of %d+: (.-) after ([%d.]+) s: ([^\n]*)")
  assert.equal(status, found, text)
  assert.truthy(tonumber(after) >= seconds[1] and tonumber(after) <= seconds[2], text)
  assert.truthy(message:find(reason), text)
end

describe("the transport mpi", function()
  local missing = not exists(plugins .. "libflow_mpi.so") and "this build has no libflow_mpi.so (libopenmpi-dev)"
    or os.execute("command -v mpirun >/dev/null") ~= 0 and "mpirun is not installed (openmpi-bin)"
    or os.getenv("FLOW_SANITIZED") and "Open MPI has its own findings under sanitizers"

  -- Root and more ranks than cores are allowed by the launcher's environment; --quiet leaves out its own comments. MPI by itself, unless
  -- the third argument is "shared".
  local function mpirun(ranks, mode, memory)
    return support.run(("FLOW_SHARED_MEMORY=%s OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 60 "
      .. "mpirun --quiet --oversubscribe --bind-to none -n %d %q mpi %s"):format(memory == "shared" and "1" or "0", ranks, program, mode))
  end

  local function with_mpirun(name, f)
    it(name, function()
      if missing then return pending(missing) end
      f()
    end)
  end

  with_mpirun("adds up, sends and gathers", function()
    for ranks = 1, 3 do
      local text, code = mpirun(ranks, "calls")
      assert.equal(0, code, text)
      assert.equal(ranks, count(text, "rank %d of " .. ranks .. ": right by mpi"), text)
    end
  end)

  with_mpirun("hands the bytes through memory on one machine", function()
    local text, code = mpirun(3, "calls", "shared")
    assert.equal(0, code, text)
    assert.equal(3, count(text, "rank %d of 3: right by shared"), text)
  end)

  with_mpirun("names the rank that does not come to a sum through memory", function()
    local text = mpirun(3, "alone", "shared")
    for rank = 0, 1 do
      check_failure(text, rank, "timed out", { 1, 15 }, "all_reduce: rank 2 did not come within 1 s %(rank %d waited")
    end
    assert.falsy(text:find(": line "), text)
  end)

  with_mpirun("lets another thread abort a sum through memory", function()
    local text = mpirun(2, "abort", "shared")
    check_failure(text, 0, "aborted", { 0.2, 3.5 }, "all_reduce: worker:7 is silent")
    assert.falsy(text:find(": line "), text)
  end)

  with_mpirun("opens one group after the other", function()
    local text, code = mpirun(2, "again")
    assert.equal(0, code, text)
    assert.equal(2, count(text, "right"), text)
  end)

  with_mpirun("leaves the host's signals alone", function()
    local text, code = mpirun(2, "signals")
    assert.equal(0, code, text)
  end)

  with_mpirun("does not wait longer than its timeout for a rank that never comes", function()
    local text = mpirun(3, "alone")
    for rank = 0, 1 do
      check_failure(text, rank, "timed out", { 1, 15 }, "all_reduce: rank 2 did not come within 1 s %(rank " .. rank .. " of 3 waited")
    end
    assert.falsy(text:find(": line "), text)
  end)

  with_mpirun("lets another thread abort the call that waits", function()
    local text = mpirun(2, "abort")
    check_failure(text, 0, "aborted", { 0.2, 3.5 }, "all_reduce: worker:7 is silent")
    assert.falsy(text:find(": line "), text)
  end)

  it("says that it needs a launcher", function()
    if missing then return pending(missing) end
    local text, code = support.run(("%q mpi calls"):format(program))
    assert.equal(1, code)
    assert.truthy(text:find("the transport mpi needs a launcher: start the program by mpirun -n N", 1, true), text)
  end)
end)

-- Starts the first `started` of `ranks` processes at once; what they wrote, after all have ended. `environment`: of the last one. `before`:
-- a program that runs the shell which starts them.
local function start_tcp(memory, ranks, mode, started, environment, before)
  local folder = support.file("store", ""):match("^(.*)/")
  local command = {}
  for rank = 0, (started or ranks) - 1 do
    command[#command + 1] = ("{ FLOW_SHARED_MEMORY=%s timeout -k 5 60 %q tcp %s %d %d %q; echo rank %d ended with $?; } &"):format(
      rank == ranks - 1 and environment or memory, program, mode, rank, ranks, folder, rank)
  end
  command = table.concat(command, " ") .. " wait"
  local ended = support.start(before and ("%s sh -c '%s'"):format(before, command) or command)
  return function()
    local text, code = ended()
    os.execute("rm -rf " .. folder)
    return text, code
  end
end
local function run_tcp(...) return start_tcp(...)() end

-- Processes that say which machine they are on: a letter for each.
local function run_hosts(machines, mode)
  local folder, command = support.file("store", ""):match("^(.*)/"), {}
  for rank = 0, #machines - 1 do
    command[#command + 1] = ("{ FLOW_SHARED_MEMORY=%s timeout -k 5 60 %q hosts %s %d %d %q; echo rank %d ended with $?; } &"):format(
      machines:sub(rank + 1, rank + 1), program, mode, rank, #machines, folder, rank)
  end
  local text = support.run(table.concat(command, " ") .. " wait")
  os.execute("rm -rf " .. folder)
  return text
end

local function check_ends(text, ranks, code)
  for rank = 0, ranks - 1 do assert.truthy(text:find(("rank %d ended with %d\n"):format(rank, code), 1, true), text) end
end

describe("the transport tcp", function()
  local function run(...) return run_tcp("0", ...) end

  it("adds up, sends and gathers", function()
    for ranks = 1, 3 do
      local text = run(ranks, "calls")
      check_ends(text, ranks, 0)
      assert.equal(ranks, count(text, "right by tcp"), text)
    end
  end)

  it("opens one group after the other", function() check_ends(run(2, "again"), 2, 0) end)

  it("leaves the host's signals alone", function() check_ends(run(2, "signals"), 2, 0) end)

  it("has the packets within a machine sent as they are made", function()
    local text = run(3, "unpaced")
    check_ends(text, 3, 0)
    for rank = 0, 2 do assert.equal(2, count(text, "rank " .. rank .. ": a connection by reno"), text) end
  end)

  it("names the rank that does not come to the opening", function()
    local text = run(3, "missing", 2)
    for rank = 0, 1 do
      check_failure(text, rank, "timed out", { 0.9, 15 }, "opening the transport tcp: rank 2 of 3 did not come within 1 s")
    end
  end)

  it("does not wait longer than its timeout for a rank that never comes", function()
    local text = run(3, "alone")
    for rank = 0, 1 do
      check_failure(text, rank, "timed out", { 0.9, 15 }, "all_reduce: rank 2 did not come within 1 s %(rank %d of 3 waited%)")
    end
    check_ends(text, 3, 0)
  end)

  it("lets another thread abort the call that waits", function()
    local text = run(3, "abort")
    for rank = 0, 1 do check_failure(text, rank, "aborted", { 0.2, 3.5 }, "all_reduce: worker:7 is silent") end
    check_ends(text, 3, 0)
  end)

  it("ends sums everywhere when they are aborted on one rank", function() check_ends(run(3, "storm"), 3, 0) end)

  -- What is half sent or half received then is known to nobody but the connection.
  it("ends a call whose bytes are on their way when it is aborted", function()
    for _ = 1, 3 do
      local text = run(2, "frozen")
      check_failure(text, 0, "aborted", { 0.2, 15 }, "broadcast: worker:7 is silent")
      check_ends(text, 1, 0)
    end
  end)

  it("opens one group after the other while strangers connect to its ports, and leaves nothing behind", function()
    local text, code = run(3, "leaks", 3, "0", ("%q 1 transport_ranks"):format(strangers))
    assert.equal(0, code, text)
    check_ends(text, 3, 0)
    local connections, ports = text:match("strangers: (%d+) connections to (%d+) ports")
    assert.truthy(tonumber(connections) > 0 and tonumber(ports) > 0, text)
  end)

  it("finds out that ranks do not agree", function()
    local text = run(3, "disagree")
    for rank = 0, 1 do
      check_failure(text, rank, "invalid state", { 0, 0 },
        "all_reduce: the ranks do not agree: rank " .. rank .. " calls all_reduce of 7 float32, rank 2 calls all_reduce of 8 float32")
    end
    check_failure(text, 2, "invalid state", { 0, 0 },
      "all_reduce: the ranks do not agree: rank [01] calls all_reduce of 7 float32, rank 2 calls all_reduce of 8 float32")
  end)

  --- A rank that has said so ends its connections, which may be what the others see.
  it("finds out that ranks do not agree about what follows rows that were sent early", function()
    local text = run(3, "disagree_late")
    check_ends(text, 3, 0)
    local sentence = "all_gather: the ranks do not agree: rank [01] calls all_gather of 7 bytes, rank 2 calls all_gather of 8 bytes"
    assert.truthy(text:find(sentence), text)
    assert.equal(3, count(text, "invalid state") + count(text, "input/output error"), text)
  end)

  it("goes on after ranks have started a gather and not made it", function()
    for ranks = 2, 3 do
      local text = run(ranks, "abandon")
      check_ends(text, ranks, 0)
      assert.equal(ranks, count(text, "right by tcp"), text)
    end
  end)

  it("opens its port in FLOW_DATA_PORTS", function()
    check_ends(run(3, "calls", 3, "0 FLOW_DATA_PORTS=23450-23499"), 3, 0)
    local sentences, ends = {
      ["23450-23440"] = 'FLOW_DATA_PORTS is "23450-23440"; write FROM-TO, two numbers from 1 to 65535, such as 5000-5015',
      ["some"] = 'FLOW_DATA_PORTS is "some"; write FROM-TO',
      ["80000"] = 'FLOW_DATA_PORTS is "80000"; write FROM-TO',
    }, {}
    for ports in pairs(sentences) do ends[ports] = start_tcp("0", 2, "missing", 2, "0 FLOW_DATA_PORTS=" .. ports) end
    for ports, sentence in pairs(sentences) do
      local text = ends[ports]()
      assert.truthy(text:find(sentence, 1, true), text)
    end
  end)

  it("notices at once when a rank dies, and names it", function()
    local text = run(3, "lost")
    -- Whoever notices first lets go of all its connections, so that the other may miss the first one, too.
    for rank = 0, 1 do
      check_failure(text, rank, "input/output error", { 0.1, 15 }, "all_reduce: the connection to ranks? %d[, 2]* is lost %([^%[]")
    end
    assert.truthy(text:find("the connection to rank 2 is lost", 1, true), text)
    check_ends(text, 2, 0)
  end)
end)

describe("memory that ranks on one machine share", function()
  local function run(...) return run_tcp("1", ...) end

  it("adds up, sends and gathers", function()
    for ranks = 2, 4 do
      local text = run(ranks, "calls")
      check_ends(text, ranks, 0)
      assert.equal(ranks, count(text, "right by shared"), text)
    end
  end)

  it("is used by all ranks or by none", function()
    local text = run(3, "calls", 3, "0")
    check_ends(text, 3, 0)
    assert.equal(3, count(text, "right by tcp"), text)
  end)

  it("leaves the host's signals alone", function() check_ends(run(2, "signals"), 2, 0) end)

  it("leaves nothing behind", function() check_ends(run(2, "leaks"), 2, 0) end)

  it("names the rank that does not come", function()
    local text = run(3, "alone")
    for rank = 0, 1 do
      check_failure(text, rank, "timed out", { 0.9, 15 }, "all_reduce: rank 2 did not come within 1 s %(rank %d waited")
    end
    check_ends(text, 3, 0)
  end)

  it("lets another thread abort the call that waits", function()
    local text = run(3, "abort")
    for rank = 0, 1 do check_failure(text, rank, "aborted", { 0.2, 3.5 }, "all_reduce: worker:7 is silent") end
    check_ends(text, 3, 0)
  end)

  it("ends sums everywhere when they are aborted on one rank", function()
    local text = run(3, "storm")
    assert.equal(3, count(text, "aborted: all_reduce: worker:7 is silent"), text)
    check_ends(text, 3, 0)
  end)

  it("finds out that ranks do not agree", function()
    local text = run(3, "disagree")
    for rank = 0, 2 do
      check_failure(text, rank, "invalid state", { 0, 0 },
        "all_reduce: the ranks do not agree: rank 0 calls all_reduce of 7 float32, rank 2 calls all_reduce of 8 float32")
    end
  end)

  it("notices at once when a rank dies, whatever it was doing, and names it", function()
    local text = run(3, "lost")
    for rank = 0, 1 do check_failure(text, rank, "input/output error", { 0.1, 15 }, "all_reduce: rank 2 %(process %d+%) has ended") end
    check_ends(text, 2, 0)
    for _ = 1, 5 do
      text = run(3, "killed")
      for rank = 0, 1 do check_failure(text, rank, "input/output error", { 0, 15 }, "all_reduce: rank 2 %(process %d+%) has ended") end
      check_ends(text, 2, 0)
    end
  end)
end)

describe("ranks of several machines of which some have several", function()
  it("add up, send and gather", function()
    for _, machines in ipairs { "aab", "abb", "aabbc" } do
      local text = run_hosts(machines, "calls")
      check_ends(text, #machines, 0)
      assert.equal(#machines, count(text, "right by hosts"), text)
    end
  end)

  it("leave nothing behind", function() check_ends(run_hosts("aab", "leaks"), 3, 0) end)

  it("notice at once on all machines when a rank dies", function()
    local text = run_hosts("aabb", "lost")
    for rank = 0, 2 do
      local status, after = text:match("rank " .. rank .. " of 4: (.-) after ([%d.]+) s: all_reduce: ")
      if not status then status, after = text:match("rank " .. rank .. " of 4: (.-) after ([%d.]+) s: among ") end
      assert.truthy((status == "input/output error" or status == "aborted") and tonumber(after) < 15, text)
    end
    assert.truthy(text:find("among ranks 2 to 3, which share a machine: all_reduce: rank 1 %(process %d+%) has ended"), text)
    check_ends(text, 3, 0)
  end)
end)
