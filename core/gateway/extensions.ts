/** What plugins of one gateway give to one another: services, and extensions, which are collected while plugins are set up. */
import type { Plugin, Service } from '../contract/contract.ts';
import type { Extension, ExtensionPoint } from '../contract/extensions.ts';

interface Added {
  readonly by: string;
  readonly extension: Extension;
}

export class Extensions {
  readonly #added = new Map<ExtensionPoint, Added[]>();
  readonly #problems: string[] = [];
  #isComplete = false;

  add(
    { name: by, extends: declared = [], mayExtend = [] }: Pick<Plugin, 'name' | 'extends' | 'mayExtend'>,
    point: ExtensionPoint,
    extension: Extension,
  ): void {
    const what = `"${extension.name}" to the extension point "${point.name}"`;
    if (this.#isComplete) throw new Error(`"${by}" adds ${what} after its setup, when it is too late`);
    if (!declared.includes(point) && !mayExtend.includes(point)) {
      this.#problems.push(
        `"${by}" adds ${what}, which it does not declare: name the point under "extends" in its plugin.`,
      );
      return;
    }
    const list = this.#added.get(point) ?? [];
    const earlier = list.find((one) => one.extension.name === extension.name);
    if (earlier !== undefined)
      this.#problems.push(
        earlier.by === by
          ? `"${by}" adds ${what} twice: it may do so once.`
          : `"${earlier.by}" and "${by}" both add ${what}: remove one of them from the list.`,
      );
    list.push({ by, extension });
    this.#added.set(point, list);
  }

  /** Extensions so far of a point that the gateway itself owns. */
  added<T extends Extension>(point: ExtensionPoint<T>): readonly T[] {
    return (this.#added.get(point) ?? []).map(({ extension }) => extension as T);
  }

  /** Nothing is added any more. Returns a sentence for each mistake. */
  complete(): readonly string[] {
    this.#isComplete = true;
    return this.#problems;
  }

  of<T extends Extension>(
    { name, extensionPoints: owned = [] }: Pick<Plugin, 'name' | 'extensionPoints'>,
    point: ExtensionPoint<T>,
  ): readonly T[] {
    if (!owned.includes(point))
      throw new Error(`"${name}" reads the extension point "${point.name}", which it does not own`);
    if (!this.#isComplete)
      throw new Error(`"${name}" reads the extension point "${point.name}" before every plugin is set up`);
    return this.added(point);
  }
}

type Declared = Pick<Plugin, 'name' | 'services'>;

export class Services {
  readonly #values = new Map<Service<unknown>, unknown>();
  /** Services that a plugin has looked up in its setup and not found. */
  readonly #missed: { readonly by: string; readonly service: Service<unknown> }[] = [];
  #settingUp: Declared | undefined;

  provide<T>(service: Service<T>, value: T): void {
    this.#values.set(service, value);
  }

  /** `by`: the plugin that looks it up. */
  find<T>(service: Service<T>, by?: Declared): T | undefined {
    if (by !== undefined && by === this.#settingUp && !this.#values.has(service))
      this.#missed.push({ by: by.name, service });
    return this.#values.get(service) as T | undefined;
  }

  get<T>(service: Service<T>, by: Declared): T {
    if (this.#values.has(service)) return this.#values.get(service) as T;
    const isDeclared = by.services?.requires?.includes(service) === true;
    throw new Error(
      `"${by.name}" asked for "${service.name}", which ${isDeclared ? 'is not provided' : 'it does not declare'}`,
    );
  }

  /** Throws nothing: returns a sentence for each service that the plugin requires and that an earlier one has not provided as it is set. */
  begin(plugin: Declared, earlier: readonly Declared[]): readonly string[] {
    this.#settingUp = plugin;
    return (plugin.services?.requires ?? [])
      .filter((service) => !this.#values.has(service))
      .map((service) => {
        const owner = earlier.find(({ services }) => services?.provides?.includes(service));
        return `"${plugin.name}" needs the service "${service.name}", which "${owner?.name}" does not provide with these settings.`;
      });
  }

  /** Every plugin is set up. Returns a sentence for each service that was looked up before its plugin had provided it. */
  complete(plugins: readonly Declared[]): readonly string[] {
    this.#settingUp = undefined;
    const late = this.#missed.filter(({ service }) => this.#values.has(service));
    return [...Map.groupBy(late, ({ by, service }) => `${by} ${service.name}`).values()].flatMap(([first]) => {
      const { by, service } = first!;
      const owner = plugins.find(({ services }) => services?.provides?.includes(service))?.name;
      if (owner === undefined || owner === by) return [];
      return `"${by}" uses the service "${service.name}" from its setup on, but "${owner}", which provides it, stands below: move "${owner}" above "${by}".`;
    });
  }
}
