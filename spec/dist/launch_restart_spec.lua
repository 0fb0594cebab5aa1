-- launch_restart_spec.lua: flowlua launch --max-restarts with mpirun, which ends all ranks with the first: the job starts again, from its
-- backup; --min-workers.
local support = require "spec.support.init"

local program = ("env FLOW_THREADS=1 FLOWLUA_PATH=%slua timeout -k 5 120 %s"):format(support.root, support.program)
local MISSING = support.missing_engine("MPI", true)

local function train(options, arguments)
  local folder = support.folder()
  return support.run(("%s launch --engine mpi --workers 2 %s %sspec/dist/resume.lua -- %s/backup --engine MPI %s"):format(program, options,
    support.root, folder, arguments))
end

local function digests(text)
  local list = {}
  for digest in text:gmatch "digest (%d+)" do list[#list + 1] = digest end
  return list
end

describe("flowlua launch --engine mpi --max-restarts", function()
  it("starts the whole job again when a rank is lost, and no bit differs", function()
    if MISSING then return pending(MISSING) end
    local text, code = train("", "")
    assert.equal(0, code, text)
    local wanted = digests(text)
    assert.equal(2, #wanted, text)
    text, code = train("--max-restarts 2", "--kill 4,7")
    assert.equal(0, code, text)
    assert.same(wanted, digests(text), text)
    for number = 1, 2 do
      local sentence = ("flowlua launch: worker:1 was killed by SIGKILL; the job starts again (%d of 2)\n"):format(number)
      assert.truthy(text:find(sentence, 1, true), text)
    end
  end)

  it("gives up after the last of them", function()
    if MISSING then return pending(MISSING) end
    local text, code = support.run(("%s launch --engine mpi --workers 2 --max-restarts 1 %s"):format(program,
      support.file("task.lua", "if os.getenv 'OMPI_COMM_WORLD_RANK' == '1' then os.exit(5) end os.execute 'sleep 60'")))
    assert.equal(5, code, text)
    assert.truthy(text:find("flowlua launch: worker:1 exited with 5; the job starts again (1 of 1)\n", 1, true), text)
    assert.truthy(text:find("flowlua launch: worker:1 exited with 5\n$"), text)
  end)
end)

describe("flowlua launch --min-workers", function()
  local function launch(options, script, environment)
    local code, arguments = (script or ""):match "^(.-)( %-%- [%d ]+)$"
    return support.run(("env %s %s launch %s %s%s"):format(environment or "", program, options,
      support.file("task.lua", code or script or ""), arguments or ""))
  end

  it("is what the tasks' strategies find in FLOW_MIN_WORKERS", function()
    local text, code = launch("--workers 3 --max-restarts 1 --min-workers 2", "print('least', os.getenv 'FLOW_MIN_WORKERS')")
    assert.equal(0, code, text)
    assert.equal(3, select(2, text:gsub("least\t2\n", "")), text)
    text = launch("--workers 1", "print('least', os.getenv 'FLOW_MIN_WORKERS')")
    assert.truthy(text:find("least\tnil\n", 1, true), text)
  end)

  it("goes on without workers that fail once too often, as long as enough are left, with the first one", function()
    local FAILS = [[local me = os.getenv("TF_CONFIG"):match '"index":(%d)'
      if me == arg[1] or me == arg[2] then os.exit(3) end
      os.execute "sleep 0.7" print("done", me)]]
    local text, code = launch("--workers 3 --min-workers 1", FAILS .. " -- 1 2")
    assert.equal(0, code, text)
    for worker = 1, 2 do
      assert.truthy(text:find(("flowlua launch: worker:%d exited with 3; the others go on without it"):format(worker), 1, true), text)
    end
    text, code = launch("--workers 3 --min-workers 1 --max-restarts 2", FAILS .. " -- 2")
    assert.equal(0, code, text)
    assert.equal(2, select(2, text:gsub("it starts again", "")), text)
    assert.truthy(text:find("worker:2 exited with 3; the others go on without it", 1, true), text)
    text, code = launch("--workers 3 --min-workers 2 --kill-after 0.1", FAILS .. " -- 1 2")
    assert.equal(3, code, text)
    text, code = launch("--workers 3 --min-workers 1 --kill-after 0.1", FAILS .. " -- 0")
    assert.equal(3, code, text)
  end)

  it("takes no harm when a worker that has come back fails after the first one is done", function()
    local folder = support.folder()
    local LATE = ([[local me, path = os.getenv("TF_CONFIG"):match '"index":(%%d)', "%s/"
      local function write(name, text) local file = io.open(path .. name, "w") file:write(text) file:close() end
      local function await(name)
        local file = io.open(path .. name)
        local number = file and file:read "*n"
        if number then return number end
        os.execute "sleep 0.05"
        return await(name)
      end
      if me == "0" then
        write("first", io.open "/proc/self/stat":read "*n")
        await "again"
        return
      end
      if not io.open(path .. "failed") then write("failed", 1) os.exit(2) end
      local first = await "first"
      write("again", 1)
      while io.open(("/proc/%%d/stat"):format(first)) do os.execute "sleep 0.05" end
      os.exit(3)]]):format(folder)
    local text, code = launch("--workers 2 --min-workers 1 --max-restarts 1", LATE)
    assert.equal(0, code, text)
    assert.truthy(text:find("worker:1 exited with 3", 1, true), text)
  end)

  it("is checked by the launcher and by the strategy", function()
    for options, sentence in pairs {
      ["--min-workers 3 --max-restarts 1"] = "--min-workers 3: the cluster has 2",
      ["--min-workers 1.5 --max-restarts 1"] = "--min-workers is a whole number from 0 to 1000, got 1.5",
      ["--min-workers 2 --max-restarts 1 --engine mpi"] = "--min-workers goes with --engine ring: mpirun ends all ranks",
    } do
      local text, code = launch(options)
      assert.equal(1, code, text)
      assert.truthy(text:find("flowlua launch: " .. sentence, 1, true), text)
    end
    local SCRIPT = "require('flow').distribute.MultiWorkerMirroredStrategy()"
    for told, sentence in pairs {
      ["3"] = "MultiWorkerMirroredStrategy: min_workers is 3, but the cluster has 2 workers",
      ["none"] = 'FLOW_MIN_WORKERS is a whole number from 1, got "none"', ["0"] = 'FLOW_MIN_WORKERS is a whole number from 1, got "0"',
    } do
      local text = launch("--workers 2 --kill-after 0.2", SCRIPT, "FLOW_MIN_WORKERS=" .. told)
      assert.truthy(text:find(sentence, 1, true), text)
    end
    -- An evaluator is not part of the cluster, whose workers are counted.
    local text, code = launch("--workers 2 --evaluator --max-restarts 1 --min-workers 2", SCRIPT)
    assert.equal(0, code, text)
  end)
end)
