-- yaml.lua: YAML texts as trees (document.lua), by libyaml's events. What job files do not need, and what makes a small file a large
-- tree, is refused by name: anchors and aliases, tags, several documents. Without libyaml files that end in .json can be read.

local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local document = require "flow.jobs.document"

local raise = errors.raise
local yaml = {}

local MOST_BYTES, MOST_DEPTH, MOST_NODES = 4 * 2^20, 64, 100000

-- yaml.h of libyaml 0.1 and 0.2, whose interface is 2. Only the beginning of the parser is read here; the rest is room for it, four times
-- what 64-bit machines need. Of the union of an event the scalar is the largest member.
local LIBRARY, DECLARATIONS = "yaml-0.so.2", [[
  typedef struct { size_t index, line, column; } flow_yaml_mark;
  typedef struct {
    int error; const char *problem; size_t problem_offset; int problem_value; flow_yaml_mark problem_mark;
    const char *context; flow_yaml_mark context_mark; uint64_t rest[256];
  } flow_yaml_parser;
  typedef struct {
    int type;
    union {
      struct { const char *anchor; } alias;
      struct { const char *anchor, *tag, *value; size_t length; int plain_implicit, quoted_implicit, style; } scalar;
      struct { const char *anchor, *tag; int implicit, style; } collection;
    } data;
    flow_yaml_mark start_mark, end_mark;
  } flow_yaml_event;
  int yaml_parser_initialize(flow_yaml_parser *parser);
  void yaml_parser_delete(flow_yaml_parser *parser);
  void yaml_parser_set_input_string(flow_yaml_parser *parser, const char *input, size_t size);
  int yaml_parser_parse(flow_yaml_parser *parser, flow_yaml_event *event);
  void yaml_event_delete(flow_yaml_event *event);
]]
-- Kinds of events; a list begins with 7.
local STREAM_START, STREAM_END, DOCUMENT_START, DOCUMENT_END, ALIAS, SCALAR, LIST_END, MAP, MAP_END = 1, 2, 3, 4, 5, 6, 8, 9, 10
local PLAIN = 1

local library      -- false: not installed

local function load()
  if library == nil then library = native.other_library(LIBRARY, DECLARATIONS) or false end
  return library
end

-- Whether YAML can be read here.
function yaml.available() return load() and true or false end

local function fail(name, mark, text, ...)
  raise("%s:%d:%d: " .. text, name, tonumber(mark.line) + 1, tonumber(mark.column) + 1, ...)
end

-- Anchors and tags could make a text mean something that it does not show: they are refused.
local function refuse_marks(name, event, anchor, tag)
  if anchor ~= nil then fail(name, event.start_mark, "&%s: anchors are not supported: write the value out", native.string(anchor)) end
  if tag ~= nil then fail(name, event.start_mark, "%s: tags are not supported: leave it out", native.string(tag)) end
end

-- The events of libyaml as a tree of documents (document.lua), each node with its place for messages. Depth and number of nodes are
-- limited: a file may be hostile.
local function read_tree(parser, event, name)
  local count = 0
  local function next_event()
    library.yaml_event_delete(event)
    if library.yaml_parser_parse(parser, event) ~= 0 then return event.type end
    local problem = parser.problem ~= nil and native.string(parser.problem) or "out of memory"
    local context = parser.context ~= nil and native.string(parser.context) .. ": " or ""
    fail(name, parser.problem_mark, "not YAML: %s%s", context, problem)
  end
  local read

  local function read_key(map, kind)
    if kind ~= SCALAR then fail(name, event.start_mark, "a key has to be a text") end
    local key, mark = native.string(event.data.scalar.value, event.data.scalar.length), { line = event.start_mark.line,
      column = event.start_mark.column }
    if map.entries[key] then fail(name, mark, "%q is given a second time: keep one", key) end
    local value = read(next_event(), 1)
    document.set(map, key, value)
    value.key_place = ("%s:%d"):format(name, tonumber(mark.line) + 1)
  end

  local depth = 0
  function read(kind)
    local place = ("%s:%d"):format(name, tonumber(event.start_mark.line) + 1)
    count = count + 1
    if count > MOST_NODES then fail(name, event.start_mark, "more than %d values", MOST_NODES) end
    if kind == ALIAS then
      fail(name, event.start_mark, "*%s: aliases are not supported: write the value out", native.string(event.data.alias.anchor))
    elseif kind == SCALAR then
      local scalar = event.data.scalar
      refuse_marks(name, event, scalar.anchor, scalar.tag)
      return document.scalar(place, native.string(scalar.value, scalar.length), scalar.style == PLAIN)
    end
    refuse_marks(name, event, event.data.collection.anchor, event.data.collection.tag)
    depth = depth + 1
    if depth > MOST_DEPTH then fail(name, event.start_mark, "nested more than %d deep", MOST_DEPTH) end
    local node = kind == MAP and document.map(place) or document.list(place)
    local ending = kind == MAP and MAP_END or LIST_END
    local entry = next_event()
    while entry ~= ending do
      if kind == MAP then read_key(node, entry) else node.items[#node.items + 1] = read(entry) end
      entry = next_event()
    end
    depth = depth - 1
    return node
  end

  local kind, tree = next_event(), nil
  while kind ~= STREAM_END do
    if kind == DOCUMENT_START then
      if tree then fail(name, event.start_mark, "a second document begins: one job is in a file") end
    elseif kind ~= STREAM_START and kind ~= DOCUMENT_END then
      tree = read(kind)
    end
    kind = next_event()
  end
  return tree or document.map(name .. ":1")
end

-- A text of YAML, or of JSON, as a tree; name: the file's, for places. Raises with line and column.
function yaml.parse(text, name)
  if #text > MOST_BYTES then raise("%s: %d bytes, a job file has at most %d", name, #text, MOST_BYTES) end
  if not load() then
    if name:find "%.json$" then return document.from_value(json.decode(text, name), name) end
    raise("%s: YAML is read by libyaml, which is not installed (Debian: libyaml-0-2); a file of JSON, NAME.json, works without it", name)
  end
  local parser, event = native.new "flow_yaml_parser", native.new "flow_yaml_event"
  if library.yaml_parser_initialize(parser) == 0 then raise("%s: libyaml has no memory", name) end
  library.yaml_parser_set_input_string(parser, text, #text)
  local ok, result = pcall(read_tree, parser, event, name)
  library.yaml_event_delete(event)
  library.yaml_parser_delete(parser)
  if not ok then error(result, 0) end
  return result
end

-- The same of a file.
function yaml.read(path)
  local file, reason = io.open(path, "rb")
  if not file then raise("the configuration cannot be read: %s", reason) end
  local text, problem = file:read(MOST_BYTES + 1)
  file:close()
  if problem then raise("the configuration cannot be read: %s: %s", path, problem) end
  return yaml.parse(text or "", path)      -- an empty file has no text
end

return yaml
