-- lengths_spec.lua: functions that are too long are named (scripts/lengths, which scripts/lint runs).
local support = require "spec.support.init"

local function lengths(name, text)
  local file = support.folder() .. "/" .. name
  support.write(file, text)
  local said, status = support.run(("luajit %sscripts/lengths %s 2>&1"):format(support.root, file))
  return said:gsub("^.*/", ""), status
end

describe("scripts/lengths", function()
  it("names a function of C that has more than 80 lines", function()
    local function code(lines) return "/* x.c */\nint f(void)\n{\n" .. ("  ;\n"):rep(lines - 2) .. "}\nint x[1] = {\n0\n};\n" end
    assert.same({ "", 0 }, { lengths("x.c", code(80)) })
    assert.same({ "x.c:3: a function of 81 lines, they have at most 80: divide it\n", 1 }, { lengths("x.c", code(81)) })
  end)

  it("names a function of Lua that has more than 60 lines without those within it", function()
    local function code(lines)
      local inner = "  local function inner()\n" .. ("    print()\n"):rep(40) .. "  end\n"
      return "local function outer()\n" .. inner .. inner .. ("  print()\n"):rep(lines - 2) .. "end\nreturn outer\n"
    end
    assert.same({ "", 0 }, { lengths("x.lua", code(60)) })
    assert.same({ "x.lua:1: a function of 61 lines, they have at most 60: divide it\n", 1 }, { lengths("x.lua", code(61)) })
  end)
end)
