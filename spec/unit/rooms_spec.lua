-- rooms_spec.lua: a use that the tables of rooms in CONTRIBUTING.md do not allow is found (scripts/rooms, which scripts/lint runs).
local support = require "spec.support.init"

-- A copy of the sources, where a spec may add what is not allowed.
local function copy_of_sources()
  local folder = support.folder()
  local said, status = support.run(("cd %s && cp -r --parents CONTRIBUTING.md core kernels bindings/api bindings/cli lua/flow %s 2>&1")
    :format(support.root, folder))
  assert.equal(0, status, said)
  return folder
end

local function rooms(folder, what)
  return support.run(("cd %s && luajit %sscripts/rooms %s 2>&1"):format(folder, support.root, what))
end

local function add(folder, file, line)
  local input = assert(io.open(folder .. "/" .. file))
  local text = input:read("*a")
  input:close()
  support.write(folder .. "/" .. file, text .. line .. "\n")
end

-- An object of C code, where read_objects looks for those of a build, and its source.
local function compile(folder, file, code)
  local source, object = ("%s/%s"):format(folder, file), ("%s/build/CMakeFiles/flow_objects.dir/%s.o"):format(folder, file)
  support.run(("mkdir -p %s %s"):format(source:match("^(.*)/"), object:match("^(.*)/")))
  support.write(source, code)
  local said, status = support.run(("cc -c -o %s %s 2>&1"):format(object, source))
  assert.equal(0, status, said)
end

describe("scripts/rooms", function()
  it("refuses an include of a room above, and one of lua/flow that requires a room above", function()
    local folder = copy_of_sources()
    for _, what in ipairs { "includes", "lua" } do assert.same({ "", 0 }, { rooms(folder, what) }) end

    add(folder, "core/tensor/axis.h", '#include "run/instance.h"')
    local said, status = rooms(folder, "includes")
    assert.equal("rooms: core/tensor/axis.h uses run/instance.h of core/run/instance.h: core/tensor may not use core/run " ..
      "(CONTRIBUTING.md)\n", said)
    assert.equal(1, status)

    add(folder, "lua/flow/tensor/init.lua", 'local function late() return require("flow.train.losses") end')
    said, status = rooms(folder, "lua")
    assert.truthy(said:find("rooms: lua/flow/tensor/init.lua uses flow.train.losses of lua/flow/train/losses.lua: " ..
      "lua/flow/tensor may not use lua/flow/train (CONTRIBUTING.md)\n", 1, true), said)
    assert.equal(1, status)
    support.run("rm -rf " .. folder)
  end)

  it("refuses an object that needs a function of a room above, and a circle of more than eight files", function()
    if select(2, support.run("cc --version 2>&1")) ~= 0 then return pending("no C compiler is installed") end
    local folder = support.folder()
    support.run(("cp %sCONTRIBUTING.md %s; mkdir -p %s/build/CMakeFiles/flow_kernels_plain.dir"):format(support.root, folder, folder))
    for number = 1, 9 do
      compile(folder, ("core/run/part%d.c"):format(number), ("void part%d(void);\nvoid part%d(void) { part%d(); }\n")
        :format(number % 9 + 1, number, number % 9 + 1))
    end
    compile(folder, "core/plan/plan.c", "void part1(void);\nvoid plan(void) { part1(); }\n")
    local said, status = rooms(folder, "build")
    assert.truthy(said:find("rooms: 9 files use each other in a circle: core/run/part1.c core/run/part2.c", 1, true), said)
    assert.truthy(said:find("rooms: core/plan/plan.c uses part1 of core/run/part1.c: core/plan may not use core/run (CONTRIBUTING.md)\n",
      1, true), said)
    assert.equal(1, status)
    compile(folder, "core/run/part9.c", "void part9(void) { }\n")
    compile(folder, "core/plan/plan.c", "void plan(void) { }\n")
    assert.same({ "", 0 }, { rooms(folder, "build") })
    support.run("rm -rf " .. folder)
  end)

  it("names a module of lua/flow that no table names", function()
    local folder = copy_of_sources()
    support.write(folder .. "/lua/flow/callbacks/forgotten_callback.lua", "-- forgotten_callback.lua: in no table.\nreturn {}\n")
    local said, status = rooms(folder, "lua")
    assert.equal("rooms: lua/flow/callbacks/forgotten_callback.lua: no other file of lua/flow names it: its line in a table is missing " ..
      "(CONTRIBUTING.md)\n", said)
    assert.equal(1, status)

    -- A word like its name in another room, as monitor.lua has it, loads nothing.
    support.run("rm " .. folder .. "/lua/flow/callbacks/forgotten_callback.lua")
    support.write(folder .. "/lua/flow/train/metrics/similarity.lua", "-- similarity.lua: in no table.\nreturn {}\n")
    assert.equal("rooms: lua/flow/train/metrics/similarity.lua: no other file of lua/flow names it: its line in a table is missing " ..
      "(CONTRIBUTING.md)\n", (rooms(folder, "lua")))
    support.run("rm -rf " .. folder)
  end)

  it("names a layer, a pass or a kernel that no table names, once the tests are built", function()
    if select(2, support.run("cc --version 2>&1")) ~= 0 then return pending("no C compiler is installed") end
    local folder = support.folder()
    support.run(("mkdir -p %s/bindings %s/build/CMakeFiles/flow_kernels_plain.dir; cp %sCONTRIBUTING.md %s")
      :format(folder, folder, support.root, folder))
    support.write(folder .. "/bindings/flow.h", "FLOW_API int flow_called_by_users(void);\n")
    compile(folder, "core/layers/forgotten.c", "const int flow_layer_forgotten = 1;\n")
    compile(folder, "core/plan/passes/forgotten.c", "int flow_graph_forgotten(void) { return 1; }\n")
    compile(folder, "core/plan/plan.c", "int flow_tested(void) { return 1; }\nint flow_called_by_users(void) { return 1; }\n")
    assert.same({ "", 0 }, { rooms(folder, "build") })

    compile(folder, "core/plan/plan_test.c", "int flow_tested(void);\nint main(void) { return flow_tested(); }\n")
    support.run(("cd %s/build/CMakeFiles && mkdir flow_tests.dir && mv flow_objects.dir/core/plan/plan_test.c.o flow_tests.dir")
      :format(folder))
    local said, status = rooms(folder, "build")
    local why = ": its line in a table is missing (CONTRIBUTING.md), or it should be static\n"
    assert.equal("rooms: core/layers/forgotten.c: no other file uses flow_layer_forgotten" .. why ..
      "rooms: core/plan/passes/forgotten.c: no other file uses flow_graph_forgotten" .. why, said)
    assert.equal(1, status)
    support.run("rm -rf " .. folder)
  end)
end)
