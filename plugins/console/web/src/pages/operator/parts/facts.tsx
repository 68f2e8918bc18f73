/** Pairs of a name and a value, one below the other. Absent values are left out. */
import { Fragment, type ReactNode } from 'react';

export type Fact = readonly [name: string, value: ReactNode];

export function Facts({ of }: { readonly of: readonly (Fact | undefined | false)[] }) {
  const given = of.filter((fact): fact is Fact => Boolean(fact));
  return (
    <dl className="facts">
      {given.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
