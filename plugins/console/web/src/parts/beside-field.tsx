/** What stands in a line with fields, below the height of their labels. */
import { Input } from '@mantine/core';
import type { ReactNode } from 'react';

export const BesideField = ({ children }: { readonly children: ReactNode }) => (
  <Input.Wrapper label={'\u00a0'} labelElement="div" labelProps={{ 'aria-hidden': true }}>
    {children}
  </Input.Wrapper>
);
