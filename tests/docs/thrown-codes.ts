/** Codes of errors that the sources throw at clients, by their kind, as far as it is written beside them. */
import { readFileSync } from 'node:fs';
import { filesIn } from '../runner/imports.ts';

/** What clients of the model API do not see: pages, the simulated vendor. */
const apart = /^(?:core\/gateway|plugins\/(?:console|sandbox|welcome|shop|payments|providers|common\/author))\//;

export interface Thrown {
  readonly code: string;
  /** undefined: the source does not say it in words. */
  readonly kind: string | undefined;
  readonly file: string;
}

export function thrownCodes(): Thrown[] {
  const texts = filesIn('core', 'plugins')
    .filter((file) => file.endsWith('.ts') && !apart.test(file))
    .map((file) => [file, readFileSync(file, 'utf8')] as const);
  const constants = new Map(
    texts.flatMap(([, text]) =>
      [...text.matchAll(/^(?:export )?const (\w*[cC]ode\w*|contextOverflow) = '([a-z_]+)'/gm)].map(
        ([, name, value]) => [name!, value!] as const,
      ),
    ),
  );
  return texts.flatMap(([file, text]) =>
    [...text.matchAll(/new GatewayError\(/g)].flatMap(({ index }) => {
      const call = argumentsAt(text, index + 'new GatewayError('.length);
      const kind = /^\s*'(\w+)'/.exec(call)?.[1];
      const named = [...call.matchAll(/\bcode: (?:'([\w-]+)'|(\w+)\b)/g)];
      return named.flatMap(([, literal, constant]) => {
        const code = literal ?? constants.get(constant!);
        return code === undefined ? [] : [{ code, kind, file }];
      });
    }),
  );
}

/** The text up to the parenthesis that closes the one before `from`. */
function argumentsAt(text: string, from: number): string {
  let depth = 1;
  let quote: string | undefined;
  for (let at = from; at < text.length; at += 1) {
    const char = text[at]!;
    if (quote !== undefined) {
      if (char === '\\') at += 1;
      else if (char === quote) quote = undefined;
    } else if (char === "'" || char === '"' || char === '`') quote = char;
    else if (char === '(') depth += 1;
    else if (char === ')') {
      depth -= 1;
      if (depth === 0) return text.slice(from, at);
    }
  }
  return text.slice(from);
}
