/** The operator's own: the picture beside the name, and links to the pages for clients, terms and imprint. */
import { Anchor, Group } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useInfo } from '../api/session.ts';

export function Logo({ size }: { readonly size: number }) {
  const logo = useInfo()?.brand.logo ?? `${import.meta.env.BASE_URL}mark.svg`;
  return <img src={logo} height={size} className="logo" alt="" />;
}

const names = ['docs', 'terms', 'imprint'] as const;

export function LegalLinks() {
  const { t } = useTranslation();
  const brand = useInfo()?.brand;
  return (
    <Group gap="sm" justify="center">
      {names.map(
        (name) =>
          brand?.[name] && (
            <Anchor key={name} href={brand[name]} fz="xs" c="dimmed">
              {t(`entry.legal.${name}`)}
            </Anchor>
          ),
      )}
    </Group>
  );
}
