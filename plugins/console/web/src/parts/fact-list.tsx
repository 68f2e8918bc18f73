/** Names and values of one thing, beside each other. */
import { DataList } from '@mantine/core';
import type { ReactNode } from 'react';

interface FactListProps {
  readonly facts: readonly (readonly [label: string, value: ReactNode])[];
  readonly labelWidth?: number;
}

export function FactList({ facts, labelWidth = 130 }: FactListProps) {
  return (
    <DataList size="sm" gap={6} labelWidth={labelWidth}>
      {facts.map(([label, value]) => (
        <DataList.Item key={label}>
          <DataList.ItemLabel>{label}</DataList.ItemLabel>
          <DataList.ItemValue>{value}</DataList.ItemValue>
        </DataList.Item>
      ))}
    </DataList>
  );
}
