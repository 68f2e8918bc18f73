/** The playground's columns: questions and answers, and beside them the settings. On a phone the settings come first. */
import { Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { Panel } from '../../../parts/page.tsx';

/** Properties of each kind's form. */
export interface KindProps<Model> {
  readonly model: Model;
  /** Empty: there is none yet. */
  readonly apiKey: string;
  /** Choice of the model, and the key. */
  readonly head: ReactNode;
}

interface BenchProps {
  readonly settings: ReactNode;
  /** Below the settings. */
  readonly measures: ReactNode;
  readonly children: ReactNode;
}

export function Bench({ settings, measures, children }: BenchProps) {
  return (
    <div className="bench">
      <div className="bench-settings">
        <Panel>
          <Stack gap="sm">{settings}</Stack>
        </Panel>
      </div>
      <Stack gap="md" className="bench-main">
        {children}
      </Stack>
      <Stack gap="md" className="bench-measures">
        {measures}
      </Stack>
    </div>
  );
}
