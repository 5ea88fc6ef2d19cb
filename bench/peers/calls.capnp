@0xd8f0a1c2b3e4f567;

interface Calls {
  tiny @0 (a :Int32);
  small @1 (a :Int32, b :Int16, c :Int16) -> (result :Int32);
  str @2 (text :Text) -> (result :Int32);
  length @3 (bytes :Data) -> (result :Int32);
  fetch @4 (count :Int32) -> (bytes :Data);
}
