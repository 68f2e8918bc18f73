/** Set-up of clients: templates beside this file, filled with an address, a key and a model. */
import tools from './tools.json' with { type: 'json' };

export interface SnippetFile {
  readonly template: string;
  /** `link`: opens a program that has registered for it. */
  readonly language: string;
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

export interface Filling {
  /** Address of the gateway, without a path and a slash at its end. */
  readonly base: string;
  readonly key: string;
  readonly model: string;
  /** Name of the gateway, for tools that keep several. */
  readonly name: string;
}

/** Stands where the key is not known: keys are shown once. */
export const keyPlaceholder = 'YOUR_KEY';

/** A template with its gaps filled. Values go in as they are: a model's name holds no quote. Into links they go encoded. */
export function fill(template: string, filling: Filling, language = 'text'): string {
  const encode = language === 'link' ? encodeURIComponent : String;
  return template
    .replace(/\{\{(base|key|model|name)\}\}/g, (_, gap: keyof Filling) => encode(filling[gap]))
    .replace(/\n$/, '');
}
