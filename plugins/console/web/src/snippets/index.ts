/** Set-up of clients: templates beside this file, filled with an address, a key and a model. */
import tools from './tools.json' with { type: 'json' };

export interface SnippetFile {
  readonly template: string;
  /** `link`: opens a program that has registered for it. `sh`: shown for the shell that is chosen. */
  readonly language: string;
  /** Template for PowerShell, where its commands differ from those of a POSIX shell by more than variables and line ends. */
  readonly powershell?: string;
  /** Where its text is kept, if it is a file and no command. */
  readonly saveAs?: string;
}
export interface Tool {
  readonly id: string;
  readonly name: string;
  /** Absent: conversations. */
  readonly makes?: string;
  readonly files: readonly SnippetFile[];
}
export const allTools: readonly Tool[] = tools;
export const chatTools = allTools.filter(({ makes }) => makes === undefined);
/** Programs that wait for their images: the gateway answers others with a task. */
export const imageTools = allTools.filter(({ makes }) => makes === 'images');

export const shells = ['sh', 'powershell'] as const;
export type Shell = (typeof shells)[number];
export const shellNames: Readonly<Record<Shell, string>> = { sh: 'bash, zsh', powershell: 'PowerShell' };

export interface Filling {
  /** Address of the gateway, without a path and a slash at its end. */
  readonly base: string;
  readonly key: string;
  readonly model: string;
  /** Name of the gateway, for tools that keep several. */
  readonly name: string;
  /** A cheaper model, for the side jobs of coding clients. Default: the model. */
  readonly small?: string | undefined;
  /** Tokens that the model takes, and that it writes, where they are known. */
  readonly context?: number | undefined;
  readonly output?: number | undefined;
}

/** Stands where the key is not known: keys are shown once. */
export const keyPlaceholder = 'YOUR_KEY';

/**
 * A template with its gaps filled. Values go in as they are: a model's name holds no quote. Into links they go encoded.
 * `{{context:128000}}` has a default; a line with a gap that has neither a value nor a default is left out.
 */
export function fill(template: string, filling: Filling, language = 'text'): string {
  const encode = language === 'link' ? encodeURIComponent : String;
  const values = new Map<string, unknown>(
    Object.entries({ ...filling, small: filling.small ?? filling.model, ...fromContainer(filling.base) }),
  );
  const lines = template.replace(/\n$/, '').split('\n');
  return lines
    .flatMap((line) => {
      let isKnown = true;
      const filled = line.replace(/\{\{(\w+)(?::(\w+))?\}\}/g, (_, gap: string, byDefault?: string) => {
        const value = values.get(gap) ?? byDefault;
        isKnown &&= value !== undefined;
        return encode(String(value));
      });
      return isKnown ? [filled] : [];
    })
    .join('\n');
}

/** How a program in a container reaches the gateway: its own machine's name does not lead out of it. */
function fromContainer(base: string): Record<string, string | undefined> {
  const isLocal = /^https?:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?=[:/]|$)/.test(base);
  if (!isLocal) return { outer: base };
  const name = 'host.docker.internal';
  return { outer: base.replace(/\/\/[^:/[]+|\/\/\[::1\]/, `//${name}`), host: `${name}:host-gateway` };
}

/** Commands of a POSIX shell that set variables and go on over line ends, for PowerShell. */
export const toPowerShell = (text: string): string =>
  text.replace(/^export (\w+)=(.*)$/gm, '$env:$1 = "$2"').replace(/ \\$/gm, ' `');
