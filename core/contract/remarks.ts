/** What a plugin says about its configuration when every plugin is set up: faults that prevent the start, and remarks. */
import type { ExtensionPoint, Service } from './extensions.ts';
import type { z } from './schema.ts';

/** A fault of a plugin's section that shows only beside the other plugins. */
export interface Fault {
  /** Where in the section, such as `['gpt', 'price']`. */
  readonly path: readonly (string | number)[];
  /** One sentence that names what to change. */
  readonly message: string;
  /**
   * The extension that is missing: where a plugin that is not in the list has its name, that plugin is named instead. Or the service of
   * another plugin that this setting needs: the plugin to add is named behind the message.
   */
  readonly lacks?: { readonly point: ExtensionPoint; readonly name: string } | { readonly service: Service<unknown> };
}

/** A value in a plugin's section that is checked with a schema from another plugin. */
export interface SectionPart {
  readonly path: readonly (string | number)[];
  readonly schema: z.ZodType;
  readonly value: unknown;
}

/** A remark on the configuration: `info` is worth knowing, `warning` means that something will not work. */
export interface Notice {
  readonly level: 'info' | 'warning';
  /** One sentence that names what it is about. */
  readonly text: string;
  /** Where in the plugin's section; absent: at what the sentence begins with, such as `files.origin`. */
  readonly path?: readonly (string | number)[];
}
