/** Reads the part of a Dockerfile's language that ours uses. Pure. https://docs.docker.com/reference/dockerfile/ */

export interface Instruction {
  readonly name: string;
  /** Flags such as `--from=build`, by name. */
  readonly flags: Readonly<Record<string, string>>;
  /** The rest as it stands, without line ends. */
  readonly text: string;
  /** The rest as words: of a JSON array its members. */
  readonly words: readonly string[];
}

export interface Stage {
  readonly name: string | undefined;
  readonly image: string;
  readonly instructions: readonly Instruction[];
}

/** Throws for an instruction that it does not know, so that nothing is passed over in silence. */
export function readDockerfile(text: string): Stage[] {
  const lines = text.replaceAll(/^\s*#.*\n/gm, '').replaceAll(/\\\n\s*/g, '');
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const line of lines.split('\n').filter((each) => each.trim() !== '')) {
    const instruction = readInstruction(line);
    if (instruction.name !== 'FROM') {
      stages.at(-1)!.instructions.push(instruction);
      continue;
    }
    const [image, , name] = instruction.words;
    stages.push({ name, image: image!, instructions: [] });
  }
  return stages;
}

const known = new Set(
  'FROM LABEL WORKDIR COPY RUN ENV USER VOLUME EXPOSE HEALTHCHECK STOPSIGNAL ENTRYPOINT CMD'.split(' '),
);

function readInstruction(line: string): Instruction {
  const [, name, given] = /^(\w+)\s+(.*)$/.exec(line.trim())!;
  if (!known.has(name!)) throw new Error(`${name} is not known here`);
  const [, marked] = /^((?:--\S+\s+)*)/.exec(given!)!;
  const flags = Object.fromEntries(
    Array.from(marked!.matchAll(/--([a-z-]+)=(\S+)/g), ([, flag, value]) => [flag!, value!]),
  );
  const text = given!.slice(marked!.length);
  const list = text.startsWith('[') ? text : /^CMD (\[.*\])$/.exec(text)?.[1];
  const words = list === undefined ? text.split(/\s+/) : (JSON.parse(list) as string[]);
  return { name: name!, flags, text, words };
}

/** `NAME=value …` of an ENV instruction. */
export function environmentOf({ words }: Instruction): Record<string, string> {
  return Object.fromEntries(words.map((word) => word.split(/=(.*)/s).slice(0, 2) as [string, string]));
}
