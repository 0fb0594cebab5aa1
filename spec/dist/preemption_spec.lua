-- preemption_spec.lua: a process that SIGTERM asks to end finishes its step, saves, and ends with 143; other workers wait for it, or end
-- with its name. The training that goes on has the bits of one that nobody disturbed. spec/dist/recovery.lua is what is trained.
local support = require "spec.support.init"

local SCRIPT = support.root .. "spec/dist/recovery.lua"

local function digests(text)
  local list = {}
  for number, rest in text:gmatch("digest (%d+) (of %d+ values, %d+ epochs)") do list[#list + 1] = number .. " " .. rest end
  return list
end

local function run(command, arguments, folder)
  return support.run(("FLOW_THREADS=1 FLOWLUA_PATH=%slua timeout -k 5 60 %s %s --folder %s %s"):format(support.root, support.program,
    command, folder, arguments))
end

local function launch(workers, options, arguments, folder)
  return run(("launch --workers %d %s %s --"):format(workers, options, SCRIPT), arguments, folder)
end

describe("SIGTERM", function()
  local function alone(arguments, folder) return run(SCRIPT, arguments, folder or support.folder()) end

  for _, data in ipairs { "tensors", "shuffled", "endless" } do
    it("lets a single process save where it is, and a second one goes on from there: " .. data, function()
      local how = "--callbacks --data " .. data
      local wanted, code = alone(how)
      assert.equal(0, code, wanted)
      assert.equal(1, #digests(wanted), wanted)
      for _, places in ipairs { { 3 }, { 1, 7, 8 }, data == "endless" and { 11 } or { 5, "test" } } do
        local folder = support.folder()
        local preempt = " --preempt alone:0@" .. table.concat(places, ",alone:0@")
        local found
        for _ = 1, #places do
          found, code = alone(how .. preempt, folder)
          assert.equal(143, code, found)
          assert.truthy(found:find("BackupAndRestore: saved after batch", 1, true), found)
          assert.truthy(found:find("ended by SIGTERM", 1, true), found)
        end
        found, code = alone(how .. preempt, folder)
        assert.equal(0, code, found)
        assert.truthy(found:find("training continues in epoch", 1, true), found)
        assert.same(digests(wanted), digests(found), found)
      end
    end)
  end

  it("ends a process that does something else with 143, and the second one kills", function()
    local script = support.file("busy.lua", [[
      local ffi = require "ffi"
      ffi.cdef "int raise(int signal);"
      local caught = pcall(function()
        ffi.C.raise(15)
        while true do end
      end)
      print("caught", caught)
      if arg[1] then ffi.C.raise(15) end
      print "end"]])
    local text, code = support.run(("%s %s"):format(support.program, script))
    assert.equal(143, code, text)
    assert.truthy(text:find("caught\tfalse\nend\n", 1, true), text)
    text, code = support.run(("%s %s twice"):format(support.program, script))
    assert.equal(143, code, text)
    assert.falsy(text:find("end\n", 1, true), text)
  end)

  -- More of them than may be lost.
  for _, case in ipairs {
    { 2, "tensors", "worker:1@3,worker:0@9,worker:1@12" }, { 2, "shuffled", "worker:0@7,worker:1@test" },
    { 3, "own", "worker:1@5,worker:2@12" }, { 2, "endless", "worker:1@6,worker:0@8" },
  } do
    local workers, data, places = unpack(case)
    it(("lets a worker leave, and the others wait for it: %d workers, %s, %s"):format(workers, data, places), function()
      local wanted = launch(workers, "--max-restarts 1", "--data " .. data, support.folder())
      local text, code = launch(workers, "--max-restarts 1", ("--data %s --preempt %s"):format(data, places), support.folder())
      assert.equal(0, code, text)
      assert.equal(workers, #digests(text), text)
      assert.same(digests(wanted), digests(text), text)
      local count = select(2, places:gsub("@", ""))
      assert.equal(count, select(2, text:gsub("was preempted; it starts again", "")), text)
      assert.truthy(text:find("was preempted (its process was asked to end, as by SIGTERM) at step", 1, true), text)
    end)
  end

  it("ends the others with the worker's name where nobody waits, after all have saved", function()
    for _, name in ipairs { "worker:0", "worker:1" } do
      local folder = support.folder()
      local wanted = launch(2, "", "--callbacks", support.folder())
      local text, code = launch(2, "", "--callbacks --preempt " .. name .. "@9", folder)
      assert.truthy(code == 143 or code == 1, text)      -- of whom the launcher saw first
      local other = name == "worker:0" and "1" or "0"
      assert.truthy(text:find("%[worker:" .. other .. "%] flowlua: [^\n]*" .. name
        .. " [%w.:]+ was preempted %(its process was asked to end, as by SIGTERM%) at step %d+"), text)
      text, code = launch(2, "", "--callbacks", folder)
      assert.equal(0, code, text)
      assert.truthy(text:find("training continues in epoch 2 after batch 2", 1, true), text)
      assert.same(digests(wanted), digests(text), text)
    end
  end)

  it("ends a whole job, which goes on from its backup", function()
    local folder, wanted = support.folder(), launch(2, "--max-restarts 1", "--callbacks", support.folder())
    for _, options in ipairs { "", "--max-restarts 1" } do
      local text, code = launch(2, options, "--callbacks --stop-launcher " .. (options == "" and 9 or 17), folder)
      assert.equal(143, code, text)
      assert.falsy(text:find("starts again", 1, true), text)
    end
    local text, code = launch(2, "--max-restarts 1", "--callbacks", folder)
    assert.equal(0, code, text)
    assert.truthy(text:find("training continues in epoch", 1, true), text)
    assert.same(digests(wanted), digests(text), text)
  end)
end)
