/** The extensions of one gateway: collected while its plugins are set up, and read by the owners of their points. */
import type { Plugin } from '../contract/contract.ts';
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
    { name: by, extends: declared = [] }: Pick<Plugin, 'name' | 'extends'>,
    point: ExtensionPoint,
    extension: Extension,
  ): void {
    const what = `"${extension.name}" to the extension point "${point.name}"`;
    if (this.#isComplete) throw new Error(`"${by}" adds ${what} after its setup, when it is too late`);
    if (!declared.includes(point)) {
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
    return (this.#added.get(point) ?? []).map(({ extension }) => extension as T);
  }
}
