/** The coding clients: in which protocol each asks, what it had in its settings before, and how one headless turn is started. */
import { appendFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface Client {
  readonly name: string;
  /** The client's own protocol, and the model that it asks for. */
  readonly protocol: 'chat' | 'messages' | 'responses' | 'gemini';
  readonly model: string;
  readonly usesWebSocket: boolean;
  /** It asks for calls that follow their schemas, as Gemini alone can be asked: `tool_choice: "validated"`. */
  readonly validates?: true;
  /** It does not send back what a model has signed: the process that passed it on adds it, and another one has nothing to add. */
  readonly dropsSignatures?: true;
  /** As `connect` calls it: the settings are written by that command, and taken back when the turn has ended. */
  readonly connects?: Connected;
  /** Addresses off this machine that it asks whatever its settings say. */
  readonly wantsAnyway?: RegExp;
  /** Command line and environment of one headless turn. */
  prepare(turn: Turn): Promise<Started>;
  /** The final answer, out of what it printed. */
  answerIn(stdout: string): string;
  /** It has no tools: the file goes with the prompt, and the answer is an edit of it that the client makes, in one request. */
  readonly edits?: true;
}

interface Connected {
  readonly program: string;
  /** Settings that a person had before, by path in the home. */
  readonly before: Readonly<Record<string, string>>;
}

export interface Turn {
  readonly home: string;
  readonly prompt: string;
  /** The file that it is about. */
  readonly file: string;
  readonly origin: string;
  readonly key: string;
}

interface Started {
  readonly words: string[];
  readonly environment: Record<string, string>;
}

/** A connection stays with one process; over HTTP each request may reach another one of a fleet. */
export const isFleet = process.env['CLIENTS_ON'] === 'fleet';
const plain = (stdout: string) => stdout;

const claudeCode: Client = {
  name: 'Claude Code',
  protocol: 'messages',
  model: 'claude-opus-5-5',
  usesWebSocket: false,
  connects: {
    program: 'claude-code',
    before: { '.claude/settings.json': '{\n    "includeCoAuthoredBy": false,\n    "env": { "EDITOR": "vi" }\n}' },
  },
  async prepare({ prompt }) {
    const tools = ['--allowedTools', 'Read', 'Bash(cat:*)'];
    return {
      words: [process.env['CLAUDE_CODE_BINARY']!, '-p', prompt, '--output-format', 'json', ...tools],
      environment: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    };
  },
  answerIn: (stdout) => (JSON.parse(stdout) as { result: string }).result,
};

/** Plugins would be fetched from elsewhere. */
export const codexConfig = `# mine
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false`;

const codex = (name: string, model: string): Client => ({
  name,
  protocol: 'responses',
  model,
  usesWebSocket: !isFleet,
  connects: { program: 'codex', before: { '.codex/config.toml': codexConfig } },
  async prepare({ home, prompt }) {
    // Where WebSockets are offered, the client uses them.
    await appendFile(join(home, '.codex/config.toml'), `supports_websockets = ${!isFleet}\n`);
    const words = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt];
    return { words: [process.env['CODEX_BINARY']!, ...words], environment: {} };
  },
  // Its answer alone goes to the standard output; what it does meanwhile goes to the other.
  answerIn: plain,
});

/** Offline it asks its provider alone: no account, no update. Its program unpacks itself once, beside where it is installed. */
const copilot = (name: string, wire: Pick<Client, 'protocol' | 'model' | 'usesWebSocket' | 'validates'>): Client => ({
  name,
  ...wire,
  async prepare({ prompt, origin, key }) {
    const binary = process.env['COPILOT_BINARY']!;
    return {
      words: [binary, '-p', prompt, '--silent', '--allow-all-tools', '--no-auto-update'],
      environment: {
        COPILOT_OFFLINE: 'true',
        COPILOT_CACHE_HOME: join(dirname(binary), 'unpacked'),
        COPILOT_PROVIDER_BASE_URL: `${origin}/v1`,
        COPILOT_PROVIDER_API_KEY: key,
        COPILOT_PROVIDER_WIRE_API: wire.protocol === 'responses' ? 'responses' : 'completions',
        COPILOT_PROVIDER_TRANSPORT: wire.usesWebSocket ? 'websockets' : 'http',
        COPILOT_MODEL: wire.model,
      },
    };
  },
  answerIn: plain,
});

/** Headless it works only in folders that it was said to trust. */
const geminiCli: Client = {
  name: 'Gemini CLI',
  protocol: 'gemini',
  model: 'gemini-3.5-pro',
  usesWebSocket: false,
  connects: {
    program: 'gemini-cli',
    before: {
      '.gemini/settings.json':
        '{\n  // mine\n  "general": { "enableAutoUpdate": false },\n  "privacy": { "usageStatisticsEnabled": false }\n}\n',
      '.gemini/.env': '# mine\nNO_BROWSER="true"',
    },
  },
  async prepare({ prompt }) {
    const words = ['--prompt', prompt, '--approval-mode', 'yolo', '--skip-trust'];
    return { words: [process.execPath, process.env['GEMINI_CLI_BINARY']!, ...words], environment: {} };
  },
  answerIn: plain,
};

const qwenCode: Client = {
  name: 'Qwen Code',
  protocol: 'chat',
  model: 'qwen3.5-coder',
  usesWebSocket: false,
  dropsSignatures: true,
  connects: {
    program: 'qwen-code',
    // Its variables are in a file that connect makes.
    before: {
      '.qwen/settings.json':
        '{\n  // mine\n  "general": { "enableAutoUpdate": false },\n  "privacy": { "usageStatisticsEnabled": false }\n}\n',
    },
  },
  async prepare({ prompt }) {
    const words = ['--prompt', prompt, '--approval-mode', 'yolo'];
    return { words: [process.execPath, process.env['QWEN_CODE_BINARY']!, ...words], environment: {} };
  },
  answerIn: plain,
};

const opencode: Client = {
  name: 'opencode',
  protocol: 'chat',
  model: 'glm-5.1',
  usesWebSocket: false,
  dropsSignatures: true,
  connects: { program: 'opencode', before: { '.config/opencode/opencode.json': '{ "share": "disabled" }' } },
  // For each folder of settings it fetches the types of its plugins, beside the turn; nothing turns that off.
  wantsAnyway: /^CONNECT registry\.npmjs\.org:443$/,
  async prepare({ prompt }) {
    return {
      words: [process.env['OPENCODE_BINARY']!, 'run', prompt],
      environment: {
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      },
    };
  },
  answerIn: plain,
};

const aider: Client = {
  name: 'Aider',
  protocol: 'chat',
  model: 'kimi-k2.6',
  usesWebSocket: false,
  edits: true,
  // A public list of models, where it does not know this one; without the list it asks all the same.
  wantsAnyway: /^CONNECT raw\.githubusercontent\.com:443$/,
  connects: {
    program: 'aider',
    before: { '.aider.conf.yml': '# mine\nanalytics-disable: true\ncheck-update: false   # never\n' },
  },
  async prepare({ prompt, file }) {
    const words = ['--yes-always', '--no-git', '--no-show-model-warnings', '--edit-format', 'whole'];
    return {
      words: [process.env['AIDER_BINARY']!, ...words, '--message', prompt, file],
      environment: { LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    };
  },
  answerIn: plain,
};

/** With newer models Codex declares its tools in namespaces within the input, and works by scripts: a tool of free text. */
export const clients: readonly Client[] = [
  claudeCode,
  codex('Codex CLI', 'gpt-5.5'),
  codex('Codex CLI with scripts', 'gpt-6.1-sol'),
  copilot('Copilot CLI', { protocol: 'chat', model: 'gemini-3.5-pro', usesWebSocket: false, validates: true }),
  copilot('Copilot CLI in responses', { protocol: 'responses', model: 'gpt-5.5', usesWebSocket: !isFleet }),
  geminiCli,
  qwenCode,
  opencode,
  // CI takes the fleet alone, and has no time for its 690 MB.
  ...(isFleet ? [] : [aider]),
];
