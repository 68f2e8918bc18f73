/** Extension points: lists that one plugin owns and others add to, such as the protocols that can be spoken with vendors. */

/** What a plugin adds; its name is unique at its point. */
export interface Extension {
  readonly name: string;
}

/** A typed list that one plugin of a gateway owns. Compared by identity; `name` is for messages. */
export interface ExtensionPoint<T extends Extension = Extension> {
  readonly name: string;
  /** Carries T for the type checker; never set. */
  readonly type?: T;
}

export function defineExtensionPoint<T extends Extension>(name: string): ExtensionPoint<T> {
  return { name };
}

/** What a plugin declares of extension points. Its place in the list does not matter for them. */
export interface DeclaresExtensions {
  /** Points that it owns: it reads their extensions, and no other plugin does. */
  readonly extensionPoints?: readonly ExtensionPoint[];
  /** Points that it adds to in `setup`; a plugin of the list must own each of them. */
  readonly extends?: readonly ExtensionPoint[];
}

/** The part of the host that is about extensions. */
export interface ExtensionHost {
  /** Adds to a point that the plugin declares under `extends`; during `setup`. */
  extend<T extends Extension>(point: ExtensionPoint<T>, extension: T): void;
  /** All extensions of a point that the plugin owns; complete when every plugin is set up, in the order of the list. */
  extensions<T extends Extension>(point: ExtensionPoint<T>): readonly T[];
}
