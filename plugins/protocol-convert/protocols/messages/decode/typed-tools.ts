/** Tools that the vendor identifies by type alone, as equivalent plain functions for other vendors. Data. */
import type { JsonObject } from '../../../../../core/json/json.ts';

interface KnownTool {
  readonly description: string;
  readonly schema: JsonObject;
}

const text = { type: 'string' };
const place = { type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 2 };
const lines = { type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 2 };

const bash: KnownTool = {
  description:
    'Runs a command in a bash session that stays the same from call to call. `restart` begins a new session.',
  schema: {
    type: 'object',
    properties: {
      command: { ...text, description: 'The command to run. Needed unless the session is restarted.' },
      restart: { type: 'boolean', description: 'true: begin a new session.' },
    },
  },
};

function textEditor(commands: readonly string[]): KnownTool {
  return {
    description:
      'Views, creates and edits text files. `view` shows a file, or a directory; `create` writes a whole file; ' +
      '`str_replace` replaces the one place where `old_str` stands; `insert` puts text behind a line.',
    schema: {
      type: 'object',
      properties: {
        command: { ...text, enum: commands },
        path: { ...text, description: 'Absolute path of the file or directory.' },
        file_text: { ...text, description: 'create: the content of the file.' },
        old_str: { ...text, description: 'str_replace: the text to replace, which must stand in the file once.' },
        new_str: { ...text, description: 'str_replace, insert: the new text.' },
        insert_line: { type: 'integer', description: 'insert: the line behind which the text goes; 0: at the top.' },
        insert_text: { ...text, description: 'insert: the text to put in.' },
        view_range: { ...lines, description: 'view: first and last line; -1 as the last: to the end.' },
      },
      required: ['command', 'path'],
    },
  };
}

const memory: KnownTool = {
  description: 'Keeps notes in files under /memories, which stay from one conversation to the next.',
  schema: {
    type: 'object',
    properties: {
      command: { ...text, enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
      path: { ...text, description: 'Path under /memories.' },
      file_text: { ...text, description: 'create: the content of the file.' },
      old_str: { ...text, description: 'str_replace: the text to replace.' },
      new_str: { ...text, description: 'str_replace: the new text.' },
      insert_line: { type: 'integer', description: 'insert: the line behind which the text goes.' },
      insert_text: { ...text, description: 'insert: the text to put in.' },
      view_range: { ...lines, description: 'view: first and last line.' },
      old_path: { ...text, description: 'rename: the path before.' },
      new_path: { ...text, description: 'rename: the path after.' },
    },
    required: ['command'],
  },
};

const pointerActions = [
  ...['key', 'type', 'mouse_move', 'left_click', 'left_click_drag', 'right_click', 'middle_click', 'double_click'],
  ...['screenshot', 'cursor_position'],
];
const laterActions = ['left_mouse_down', 'left_mouse_up', 'scroll', 'hold_key', 'wait', 'triple_click'];

function computer(actions: readonly string[]): KnownTool {
  return {
    description: 'Uses a computer by its mouse, its keyboard and pictures of its screen.',
    schema: {
      type: 'object',
      properties: {
        action: { ...text, enum: actions },
        coordinate: { ...place, description: 'Pixels from the left and from the top.' },
        start_coordinate: { ...place, description: 'left_click_drag: where it begins.' },
        text: { ...text, description: 'type: the text; key, hold_key: the keys; clicks and scroll: keys held down.' },
        scroll_direction: { ...text, enum: ['up', 'down', 'left', 'right'] },
        scroll_amount: { type: 'integer', description: 'scroll: how many clicks of the wheel.' },
        duration: { type: 'number', description: 'hold_key, wait: seconds.' },
      },
      required: ['action'],
    },
  };
}

const editorCommands = ['view', 'create', 'str_replace', 'insert'];

/** By prefix of the type; the first match counts. */
const knownTools: readonly (readonly [prefix: string, tool: KnownTool])[] = [
  ['bash_', bash],
  ['text_editor_20241022', textEditor([...editorCommands, 'undo_edit'])],
  ['text_editor_20250124', textEditor([...editorCommands, 'undo_edit'])],
  ['text_editor_', textEditor(editorCommands)],
  ['memory_', memory],
  ['computer_20241022', computer(pointerActions)],
  ['computer_2025', computer([...pointerActions, ...laterActions])],
];

/** undefined: the input of the tool is known to the vendor alone (toolsets, future tools). */
export function knownTool(type: string, tool: JsonObject): KnownTool | undefined {
  const known = knownTools.find(([prefix]) => type.startsWith(prefix))?.[1];
  const width = tool['display_width_px'];
  const height = tool['display_height_px'];
  if (known === undefined || typeof width !== 'number' || typeof height !== 'number') return known;
  return { ...known, description: `${known.description} The screen has ${width} by ${height} pixels.` };
}
