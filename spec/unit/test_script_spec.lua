-- test_script_spec.lua: what scripts/test makes of what a program of C tests says and how it ends.
local support = require "spec.support.init"

-- What scripts/test says, and its status, where the program of spec/c/test_base.c is this shell script.
local function tested(program)
  local build = support.folder()
  assert.equal(0, select(2, support.run(("mkdir -p %s/bin"):format(build))))
  support.write(build .. "/bin/test_base", "#!/bin/sh\n" .. program)
  support.run(("chmod +x %s/bin/test_base"):format(build))
  local output, status = support.run(("env -u FLOW_TEST_TIMEOUT FLOW_TEST_JOBS=1 FLOW_BUILD=%s %sscripts/test spec/c/test_base.c 2>&1")
    :format(build, support.root))
  support.run("rm -rf " .. build)
  return output, status
end

local PASSED = "echo '[       OK ] one'\n"

describe("scripts/test", function()
  it("counts what passes, fails and is skipped", function()
    local output, status = tested(PASSED .. "echo '[  FAILED  ] two'; echo '[  SKIPPED ] three'\nexit 1")
    assert.truthy(output:find("FAIL c: test_base two\n", 1, true), output)
    assert.truthy(output:find("1 passed, 1 failed, 1 skipped\n", 1, true), output)
    assert.equal(1, status)
  end)

  it("names a test whose memory was not given back, of which cmocka tells standard error alone", function()
    local output, status = tested(PASSED .. [[
exec >&2
echo 'after the test 64 bytes more are in use than before it'
echo 'Could not run test: Test teardown failed'
echo '[  ERROR   ] two'
exit 1]])
    assert.truthy(output:find("FAIL c: test_base two\n", 1, true), output)
    assert.truthy(output:find("64 bytes more", 1, true), output)
    assert.truthy(output:find("1 passed, 1 failed, 0 skipped\n", 1, true), output)
    assert.equal(1, status)
  end)

  it("counts a failed test once, though standard error has its place, too", function()
    local output = tested(PASSED .. "echo '[  ERROR   ] --- 1 != 2' >&2; echo '[  FAILED  ] two'\nexit 1")
    assert.truthy(output:find("1 passed, 1 failed, 0 skipped\n", 1, true), output)
  end)

  it("fails where a program ends with another status than its tests tell", function()
    for _, program in ipairs { PASSED .. "exit 1", PASSED .. "kill -SEGV $$", "exit 0" } do
      local output, status = tested(program)
      assert.truthy(output:find(" 1 failed, 0 skipped\n", 1, true), output)
      assert.equal(1, status)
    end
  end)
end)
