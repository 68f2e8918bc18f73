/** What plugins give to one another: services, and extension points, lists that one plugin owns and others add to, such as wire protocols. */

/** Something that lives as long as the gateway, such as the database or the catalogue. */
export interface Service<T> {
  readonly name: string;
  readonly type?: T;
}

const defined = new WeakSet<object>();

/** A new service. One plugin names it under `services.provides` and calls `host.provide`; others get its value with `host.get` or `host.find`. */
export function defineService<T>(name: string): Service<T> {
  const service = { name };
  defined.add(service);
  return service;
}

export function isService(value: unknown): value is Service<unknown> {
  return typeof value === 'object' && value !== null && defined.has(value);
}

/** The services that a plugin takes from other plugins and gives to them. */
export interface PluginServices {
  /** Must be there at setup: a plugin above in the list provides each of them. */
  readonly requires?: readonly Service<unknown>[];
  /** Looked up with `host.find`; may be absent. Looked up in the setup, a plugin above in the list provides it, or none does. */
  readonly optional?: readonly Service<unknown>[];
  readonly provides?: readonly Service<unknown>[];
}

/** How a store answers. `away`: not at all. */
export type StoreState = 'ok' | 'away';

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

/** A new extension point. Its owner names it under `extensionPoints` and reads `host.extensions`; others name it under `extends`. */
export function defineExtensionPoint<T extends Extension>(name: string): ExtensionPoint<T> {
  return { name };
}

/** What a plugin declares of extension points. Its place in the list does not matter for them. */
export interface DeclaresExtensions {
  /** Points that it owns: it reads their extensions, and no other plugin does. */
  readonly extensionPoints?: readonly ExtensionPoint[];
  /** Points that it adds to in `setup`; a plugin of the list must own each of them. */
  readonly extends?: readonly ExtensionPoint[];
  /** Points that it adds to, too, where a plugin of the list owns them; otherwise what it adds is read by none. */
  readonly mayExtend?: readonly ExtensionPoint[];
}

/** The part of the host that is about extensions. */
export interface ExtensionHost {
  /** Adds to a point that the plugin declares under `extends`; during `setup`. */
  extend<T extends Extension>(point: ExtensionPoint<T>, extension: T): void;
  /** All extensions of a point that the plugin owns; complete when every plugin is set up, in the order of the list. */
  extensions<T extends Extension>(point: ExtensionPoint<T>): readonly T[];
}
