/** The operator's look: name, pictures, colour, terms and imprint. */
import { Button, FileButton, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { IconUpload } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { paletteOf } from '../../../../../../brand/palette.ts';
import { useForms, useMember } from './context.ts';
import type { Path } from './edit-yaml.ts';
import { TextField } from './fields.tsx';
import { valueAt } from './layers.ts';

const at = ['console', 'brand'];
/** In base64 it is still below what the section takes. */
const mostBytes = 64 * 1024;
const types = 'image/png,image/jpeg,image/webp,image/svg+xml';

export function BrandForm() {
  const { t } = useTranslation();
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextField path={['console', 'name']} label={t('operator.config.forms.gatewayName')} />
        <Accent />
        <Picture name="logo" label={t('operator.config.forms.brand.logo')} />
        <Picture name="favicon" label={t('operator.config.forms.brand.favicon')} />
        {(['terms', 'imprint'] as const).map((name) => (
          <TextField
            key={name}
            path={[...at, name]}
            label={t(`entry.legal.${name}`)}
            hint={t('operator.config.forms.brand.legalHint', { file: `\${file:${name}.md}` })}
            usual="https://shop.example/terms"
          />
        ))}
      </SimpleGrid>
    </Stack>
  );
}

/** The colour, and what becomes of it where words must be read on it and in it. */
function Accent() {
  const { t } = useTranslation();
  const { layers } = useForms();
  const written = valueAt(layers, [...at, 'accent']);
  const shades = typeof written === 'string' && /^#[0-9a-f]{6}$/i.test(written) ? paletteOf(written) : undefined;
  return (
    <div>
      <TextField
        path={[...at, 'accent']}
        label={t('operator.config.forms.brand.accent')}
        hint={t('operator.config.forms.brand.accentHint')}
        usual="#3b5bdb"
      />
      {shades !== undefined && (
        <Group gap={4} mt={6} aria-hidden>
          {shades.map((shade) => (
            <span key={shade} className="chart-dot" style={{ background: shade, width: 16, height: 16 }} />
          ))}
        </Group>
      )}
    </div>
  );
}

function Picture({ name, label }: { readonly name: string; readonly label: string }) {
  const { t } = useTranslation();
  const path: Path = [...at, name];
  const { isFixed, set } = useMember(path);
  const [problem, setProblem] = useState<string>();
  const take = async (file: File | null) => {
    if (file === null) return;
    if (file.size > mostBytes) return setProblem(t('operator.config.forms.brand.tooLarge'));
    const letters = Array.from(new Uint8Array(await file.arrayBuffer()), (byte) => String.fromCharCode(byte));
    const isDone = set(`data:${file.type};base64,${btoa(letters.join(''))}`);
    setProblem(isDone ? undefined : t('operator.config.forms.refused'));
  };
  return (
    <div>
      <TextField path={path} label={label} usual="https://shop.example/logo.svg" />
      <Group gap="xs" mt={6}>
        <FileButton accept={types} onChange={(file) => void take(file)} disabled={isFixed}>
          {(props) => (
            <Button {...props} size="compact-xs" variant="default" leftSection={<IconUpload size={13} />}>
              {t('operator.config.forms.brand.upload', { name: label })}
            </Button>
          )}
        </FileButton>
        {problem !== undefined && (
          <Text fz="xs" c="red" role="alert">
            {problem}
          </Text>
        )}
      </Group>
    </div>
  );
}
